"""
On Apache Spark
===============

A Spark DataFrame is processed on the cluster, and the result is the same as on one machine: with classic Spark or Spark
Connect, as a call or as a stage of ``pyspark.ml``. Here Spark runs locally, which needs Java 17 or newer.
"""

# %%
# A session on two cores; without Java, the example uses pandas instead.
import os
import shutil
import sys

import matplotlib.pyplot as plt
import pandas as pd

import belief

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = None
if shutil.which("java") or "JAVA_HOME" in os.environ:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
                "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}  # fmt: skip
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
print(f"Spark {spark.version}" if spark else "Spark was not started, because Java is missing; the example uses pandas.")

# %%
# The same call as everywhere; ``label`` names the target column.
table = pd.read_csv(belief.datasets.CHURN)
there = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True) if spark else table
result = belief.select(there, label="left", n_features_to_select=6, random_state=0)
print(result.explain())

# %%
# The selection and the weights (to 1e-9) are those of one machine.
local = belief.select(table, label="left", n_features_to_select=6, random_state=0)
print(result.selected_names == local.selected_names, f"{abs(result.weights - local.weights).max():.0e}")
figure, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.axline((0, 0), slope=1, color="#cc6d2d")
ax.plot(local.weights, result.weights, "o", color="#17487a")
ax.set(xlabel="weight on one machine", ylabel="weight on Spark", aspect="equal")

# %%
# As a stage of a pipeline, the model drops the columns that were not selected.
if spark:
    names = [name for name in there.columns if name != "left"]
    model = belief.spark.BeliefSelector(inputCols=names, labelCol="left", numTopFeatures=4, seed=0).fit(there)
    small = model.transform(there)
    small.show(3)
    print(small.columns)
    spark.stop()

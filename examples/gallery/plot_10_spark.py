"""
On Apache Spark
===============

A Spark DataFrame is processed on the cluster, and the result is the same as on one machine. Call ``belief.select``, or
use a stage of ``pyspark.ml``, with classic Spark or Spark Connect. In this example, Spark runs locally, which needs
Java 17 or newer.
"""

# %%
# Start a session on two cores. Without Java, the example uses pandas instead.
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
# The call is the same as for any other table; ``label`` names the target column.
table = pd.read_csv(belief.datasets.CHURN)
there = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True) if spark else table
result = belief.select(there, label="left", n_features_to_select=6, random_state=0)
print(result.explain())

# %%
# The selection is the same as on one machine, and the weights agree to 1e-9.
local = belief.select(table, label="left", n_features_to_select=6, random_state=0)
print(result.selected_names == local.selected_names, f"{abs(result.weights - local.weights).max():.0e}")
figure, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.axline((0, 0), slope=1, color="#cc6d2d")
ax.plot(local.weights, result.weights, "o", color="#17487a")
ax.set(xlabel="weight on one machine", ylabel="weight on Spark", aspect="equal")

# %%
# The model of a pipeline stage drops the columns that were not selected.
if spark:
    names = [name for name in there.columns if name != "left"]
    model = belief.spark.BeliefSelector(inputCols=names, labelCol="left", numTopFeatures=4, seed=0).fit(there)
    small = model.transform(there)
    small.show(3)
    print(small.columns)
    spark.stop()

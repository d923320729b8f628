"""
On Apache Spark
===============

A Spark DataFrame is searched where it is, and gives the features that one machine would give: classic Spark or Connect,
as a call or as a stage of ``pyspark.ml``. Here Spark runs on this machine, which needs Java 17 or newer.
"""

# %%
# A session on two cores. Without Java there is none, and what follows says so instead of running.
import os
import shutil
import sys

import pandas as pd

import belief

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = None
if shutil.which("java") or "JAVA_HOME" in os.environ:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
                "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}  # fmt: skip
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
print(f"Spark {spark.version}" if spark else "There is no Java here: Spark was NOT started, all runs on this machine.")

# %%
# The same call as everywhere; ``label`` names the column of the classes.
table = pd.read_csv(belief.datasets.CHURN)
there = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True) if spark else table
result = belief.select(there, label="left", n_features_to_select=6, random_state=0)
print(result.explain())

# %%
# It is what one machine selects, and the weights are the same to 1e-9.
local = belief.select(table, label="left", n_features_to_select=6, random_state=0)
print(result.selected_names == local.selected_names, f"{abs(result.weights - local.weights).max():.0e}")
ax = belief.plot.ranking(result)

# %%
# As a stage of a pipeline, the model drops the columns that were not selected.
if spark:
    names = [name for name in there.columns if name != "left"]
    model = belief.spark.BeliefSelector(inputCols=names, labelCol="left", numTopFeatures=4, seed=0).fit(there)
    model.transform(there).show(3)
    spark.stop()

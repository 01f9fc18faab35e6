#!/usr/bin/env bash
# A template: a sweep over a Slurm cluster, a shard per task of the array. In the checkout, built:
#
#   sbatch --array=1-8 ci/slurm.sh lab seeds --count 800
#   ci/gate lab seeds --count 800 --merge 8
#
#SBATCH --job-name=tilegate
#SBATCH --gpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --output=build/slurm-%A-%a.log
set -euo pipefail
exec ci/gate "$@" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"

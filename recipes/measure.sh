#!/bin/sh
# A checkpoint's calibration and figures: sanity checks, one-word changes, agreement with ratings of references that it was not trained
# on, data-to-text.
#
#   DATA=folder sh measure.sh CHECKPOINT OUT HELD_OUT VALIDATION BASELINE...
#
# DATA has WebNLG's ratings in webnlg/. base.sh, base_copies.sh, base_ends.sh, mini_again.sh, mini_copies.sh and mini_last.sh end with this script.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
DIVISOR=${DIVISOR:-1}  # of numbers of bootstrap samples, as in mini.sh
checkpoint=$1
out=$2
held_out=$3
validation=$4
shift 4
cache=$out/cache  # the checkpoint's scores are kept here: none is computed twice, and a killed run resumes

bleurt-repro calibrate "$checkpoint" --cache "$cache" --ratings "$validation" --reliability "$held_out" \
    --report "$out/reliability.json"
# measured EXPERIMENT OPTIONS...
measured() {
    experiment=$1
    shift
    bleurt-repro experiment "$experiment" --checkpoint "$checkpoint" --cache "$cache" --output "$out/$experiment" "$@"
}
measured sanity --references "$held_out" --baselines "$@"
measured adversarial --references "$held_out" --baselines "$@"
measured agreement --ratings "$held_out" --by lp --resamples $(((200 + DIVISOR - 1) / DIVISOR)) \
    --title "WMT 2018, to English, references not trained on" --baselines "$@"
measured webnlg --data "$DATA/webnlg" --training-systems 0 --training-inputs 0 --resamples $(((500 + DIVISOR - 1) / DIVISOR)) --baselines "$@"

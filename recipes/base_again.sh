#!/bin/sh
# The larger checkpoint learns again: what it and a second model of its size, which was pre-trained and has seen nothing of 2018, think
# of outputs of systems together; what nobody rated keeps the score that it has, and an empty candidate gets less.
#
#   DATA=folder WORK=folder sh base_again.sh
#
# DATA and WORK are those of base.sh, which made the checkpoint before, and of mini.sh, whose first two steps made the synthetic pairs in
# WORK/pairs. On one core the second model takes an hour and a half, each of the two runs half an hour. base_copies.sh goes on from
# there. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
START=${START:-$WORK/base/bleurt-repro-base}  # what learns
ENCODER=${ENCODER:-sentence-transformers/all-mpnet-base-v2}  # of the second model
FROZEN=${FROZEN:-4}                # lowest layers that stay as they are
RATINGS=${RATINGS:-$WORK/base}     # folder with ratings.jsonl and held_out.jsonl
PAIRS=${PAIRS:-$WORK/pairs}        # synthetic pairs
PRETRAIN=${PRETRAIN:-pretrain_mini}
FINETUNE=${FINETUNE:-finetune_base_short}
DIVISOR=${DIVISOR:-1}              # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
again=$WORK/base-again
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$again"

# scored NAME CHECKPOINT OUTPUT: scores of the pairs of a file
scored() {
    [ -f "$again/$3.txt" ] || bleurt-repro score --pairs "$again/$1.jsonl" --checkpoint "$2" --dtype bfloat16 --output "$again/$3.txt"
}

# 1. The second model: pre-trained on synthetic pairs, fine-tuned on ratings of 2015 to 2017
[ -f "$again/pretrained/results.json" ] || bleurt-repro pretrain --config "$PRETRAIN" --learning-rate 5e-5 --num-train-epochs 1 \
    --validation-segments "$(of 400)" --eval-steps 300 --save-steps 300 --model "$ENCODER" --pairs "$PAIRS" \
    --output-dir "$again/pretrained" --resume
[ -f "$again/second/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --max-length 256 --model "$again/pretrained" --seed 1 \
    --train-file "$WORK/wmt2018/train.jsonl" --validation-file "$validation" --output-dir "$again/second" --resume

# 2. Labels of rated pairs, and of outputs whose references are not held out: what both think, on the scale of the first
if [ ! -f "$again/labels/train.jsonl" ]; then
    python "$recipes/pairs_to_label.py" --outputs "$WORK/wmt2018/test.jsonl" --held-out "$RATINGS/held_out.jsonl" \
        --held-out "$validation" --rated "$RATINGS/ratings.jsonl" --most-outputs "$(of 8500)" --per-reference 3 --seed 141 \
        --output "$again/outputs.jsonl"
    scored outputs "$START" outputs
    scored outputs "$again/second" outputs-second
    bleurt-repro data pseudo-labels --input "$again/outputs.jsonl" --dropping-rate 0 --scores "$again/outputs.txt" --weight 0.4 \
        --scores "$again/outputs-second.txt" --weight 0.6 --output "$again/labels"
fi

# 3. Two runs over half of these pairs each, the extremes, and others with the scores that they have
if [ ! -f "$again/train.jsonl" ]; then
    bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.05 --seed 1 --output "$again/anchored.jsonl"
    grep "anchor:" "$again/anchored.jsonl" >"$again/anchors.jsonl"
    python "$recipes/training_set.py" --ratings "$again/anchors.jsonl" --labels "$again/labels/train.jsonl" --like "$again/outputs.txt" \
        --joined "$(of 1200)" --seed 1 --output "$again/train.jsonl"
fi
for seed in 1 2; do
    train=$again/train-$seed
    if [ ! -f "$train.jsonl" ]; then
        bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
            --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 1100)" --seed "20$seed" \
            --output "$train-contrasts.jsonl"
        bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$RATINGS/ratings.jsonl" --turned -0.6 \
            --pairs "$(of 4500)" --seed "20$seed" --output "$train-near.jsonl"
        for kind in roles opposites; do
            bleurt-repro data $kind --pairs "$(of 700)" --seed "20$seed" --output "$train-$kind.jsonl"
        done
        cat "$train-contrasts.jsonl" "$train-near.jsonl" "$train-roles.jsonl" "$train-opposites.jsonl" >"$train-others.jsonl"
        scored "train-$seed-others" "$START" "train-$seed-others"
        python "$recipes/scored_pairs.py" --pairs "$train-others.jsonl" --scores "$train-others.txt" --output "$train-scored.jsonl"
        python "$recipes/training_round.py" --train "$again/train.jsonl" --number "$(of 15800)" --identical "$(of 800)" \
            --empty "$(of 1000)" --empty-score -2.6 --repeated "$(of 400)" --identical-contrasts "$(of 1200)" \
            --contrasts "$train-scored.jsonl" --seed "$seed" --output "$train.jsonl"
    fi
    [ -f "$again/run-$seed/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --dropout 0 \
        --warmup-steps 0.05 --frozen-layers "$FROZEN" --max-length 256 --eval-strategy no --save-strategy steps --save-steps 100 \
        --save-total-limit 1 --load-best-model-at-end False --model "$START" --seed "$seed" --train-file "$train.jsonl" \
        --validation-file "$validation" --output-dir "$again/run-$seed" --resume
done
[ -d "$again/bleurt-repro-base" ] || bleurt-repro average "$again/run-1" "$again/run-2" --output "$again/bleurt-repro-base"

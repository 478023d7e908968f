#!/bin/sh
# The last pass of both embedded checkpoints: copies, empty candidates and texts that stand twice, beside ratings and labels.
#
#   DATA=folder WORK=folder sh last_pass.sh
#
# DATA and WORK are those of mini.sh, whose ratings lie in WORK/embedded. The larger checkpoint trains its three upper layers
# alone; the smaller one learns from the larger one's labels and from BERTscore. Stop it whenever you like and start it again.
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
BASE=${BASE:-$WORK/base/bleurt-repro-base}   # what base.sh made
MINI=${MINI:-$WORK/again/bleurt-repro-mini}  # what mini_again.sh made
LARGER=${LARGER:-sentence-transformers/all-mpnet-base-v2}  # whose 9th layer BERTscore compares
LAYER=${LAYER:-9}
FROZEN=${FROZEN:-9}                    # layers of base that stay as they are
RATINGS=${RATINGS:-$WORK/embedded}     # folder with ratings.jsonl and held_out.jsonl
FINETUNE=${FINETUNE:-finetune_mini}
DIVISOR=${DIVISOR:-1}                  # of all numbers of pairs, as in mini.sh

# of NUMBER: so many pairs, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
last=$WORK/last
validation=$WORK/wmt2018/validation.jsonl
mkdir -p "$last"

# 1. Ratings with anchors, near copies, roles and opposites, contrasts
[ -f "$last/anchored.jsonl" ] || bleurt-repro data anchors --ratings "$RATINGS/ratings.jsonl" --share 0.15 --seed 111 \
    --output "$last/anchored.jsonl"
[ -f "$last/contrasts.jsonl" ] || bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" \
    --leave-out multi30k --reordered 0.4 --mirrored 0.25 --ratings "$RATINGS/ratings.jsonl" --pairs "$(of 2400)" --seed 111 \
    --output "$last/contrasts.jsonl"
[ -f "$last/near.jsonl" ] || bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 \
    --ratings "$RATINGS/ratings.jsonl" --turned -0.6 --pairs "$(of 80000)" --seed 111 --output "$last/near.jsonl"
for kind in roles opposites; do
    [ -f "$last/$kind.jsonl" ] || bleurt-repro data "$kind" --pairs "$(of 3000)" --seed 111 --output "$last/$kind.jsonl"
done
# more NAME NEAR RARE TEMPLATES CONTRASTS: near copies of all kinds, of the next RARE those of two kinds, and some of the rest
more() {
    {
        head -n "$(of "$2")" "$last/near.jsonl"
        tail -n "+$(($(of "$2") + 1))" "$last/near.jsonl" | head -n "$(of "$3")" |
            grep -e "contrast: repeated" -e "contrast: participants" || true
        for kind in roles opposites; do head -n "$(of "$4")" "$last/$kind.jsonl"; done
        head -n "$(of "$5")" "$last/contrasts.jsonl"
    } >"$last/$1-more.jsonl"
}
# learn FOLDER OPTIONS...: one pass without dropout, unless that is done
learn() {
    folder=$1
    shift
    [ -f "$folder/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --num-train-epochs 1 --dropout 0 --max-length 256 \
        --eval-strategy steps --save-strategy steps --load-best-model-at-end False --seed 111 "$@" \
        --validation-file "$validation" --output-dir "$folder" --resume
}

# 2. Base: people's ratings and all of these, the lower layers frozen
if [ ! -f "$last/base-train.jsonl" ]; then
    more base 3000 12000 500 600
    python "$recipes/training_set.py" --ratings "$last/anchored.jsonl" --joined "$(of 2500)" --seed 111 --output "$last/base-rated.jsonl"
    python "$recipes/training_round.py" --train "$last/base-rated.jsonl" --number "$(of 6000)" --identical "$(of 900)" \
        --empty "$(of 900)" --repeated "$(of 1000)" --identical-contrasts "$(of 1500)" --contrasts "$last/base-more.jsonl" --seed 111 \
        --output "$last/base-train.jsonl"
fi
learn "$last/base-pass" --learning-rate 4e-5 --frozen-layers "$FROZEN" --eval-steps 250 --save-steps 250 --model "$BASE" \
    --train-file "$last/base-train.jsonl"

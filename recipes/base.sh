#!/bin/sh
# A scorer of BLEURT-base's size (MPNet, 109 million parameters): pre-training on synthetic pairs, fine-tuning, figures.
#
#   DATA=folder WORK=folder sh base.sh
#
# DATA and WORK are those of mini.sh, whose first two steps made the synthetic pairs in WORK/pairs. On two cores a pass over
# 10,000 ratings takes a quarter of an hour, so run it on a GPU (BF16 stays on). Stop it whenever you like and start it again.
# With START=encoder it fine-tunes that for step 3, and leaves out pre-training and protocol models (steps 1 and 2).
set -eu

DATA=${DATA:?give the folder of the data, DATA=...}
WORK=${WORK:?give the folder to work in, WORK=...}
ENCODER=${ENCODER:-sentence-transformers/all-mpnet-base-v2}
SEEDS=${SEEDS:-1 2 3}
RATE=${RATE:-3e-5}             # of pre-training and fine-tuning
EPOCHS=${EPOCHS:-3}            # of fine-tuning on ratings
SHIP_EPOCHS=${SHIP_EPOCHS:-2}  # of fine-tuning on ratings, anchors, longer texts, contrasts and near copies
SHIP_OPTIONS=${SHIP_OPTIONS:-} # of that fine-tuning, such as --frozen-layers 4
PRETRAIN=${PRETRAIN:-pretrain_mini}
FINETUNE=${FINETUNE:-finetune_mini}
PAIRS=${PAIRS:-$WORK/pairs}    # synthetic pairs
CONTRASTS=${CONTRASTS:-8000}   # from parallel text
NEAR=${NEAR:-8000}             # near copies
TEMPLATES=${TEMPLATES:-4000}   # of roles, and as many of opposites
LONGER=${LONGER:-2500}         # texts of two to four segments
LAYER=${LAYER:-9}              # of the encoder, which BERTscore compares
DIVISOR=${DIVISOR:-1}          # of all numbers of pairs and bootstrap samples, as in mini.sh

# of NUMBER: so many pairs or samples, fewer with a DIVISOR, rounded up
of() { echo $((($1 + DIVISOR - 1) / DIVISOR)); }

recipes=$(dirname "$0")
base=$WORK/base
START=${START:-}
mkdir -p "$base"

# tune FOLDER OPTIONS...: fine-tune into a folder, unless that is done
tune() {
    folder=$1
    shift
    [ -f "$folder/results.json" ] || bleurt-repro finetune --config "$FINETUNE" --learning-rate "$RATE" "$@" \
        --output-dir "$folder" --resume
}
# average NAME: the mean of the weights of NAME-1, NAME-2, ...
average() {
    [ -d "$base/$1" ] && return
    set -- "$1" $(for seed in $SEEDS; do echo "$base/$1-$seed"; done)
    name=$1
    shift
    bleurt-repro average "$@" --output "$base/$name"
}
# checkpoints NAME...: options that name the seeds of each, and their mean
checkpoints() {
    for name in "$@"; do
        for seed in $SEEDS; do printf -- '--checkpoint %s ' "$base/$name-$seed"; done
        printf -- '--checkpoint %s ' "$base/$name"
    done
}

# 1. Pre-training on all signals
[ -n "$START" ] || [ -f "$base/pretrained/results.json" ] || bleurt-repro pretrain --config "$PRETRAIN" --learning-rate "$RATE" \
    --model "$ENCODER" --pairs "$PAIRS" --output-dir "$base/pretrained" --resume

# 2. Protocol models: ratings of 2015-16, tested on 2017; ratings of 2015-17, tested on 2018, of which no step saw anything
for year in 2017 2018; do
    [ -d "$WORK/wmt$year" ] || bleurt-repro data wmt --config-name "$year" --data-dir "$DATA/wmt" --output "$WORK/wmt$year"
    [ -z "$START" ] || continue
    for seed in $SEEDS; do
        for start in bare pretrained; do
            model=$base/pretrained
            [ "$start" = pretrained ] || model=$ENCODER
            tune "$base/$start-$year-$seed" --num-train-epochs "$EPOCHS" --model "$model" --seed "$seed" \
                --train-file "$WORK/wmt$year/train.jsonl" --validation-file "$WORK/wmt$year/validation.jsonl"
        done
    done
    average "bare-$year"
    average "pretrained-$year"
    # shellcheck disable=SC2046  # its words are options
    [ -f "$base/agreement-$year/results.json" ] || bleurt-repro experiment agreement --by lp --published "$year" \
        --ratings "$WORK/wmt$year/test.jsonl" $(checkpoints "bare-$year" "pretrained-$year") \
        --baselines chrf++ "bertscore@$LAYER:$ENCODER" --title "WMT $year, to English" --resamples "$(of 1000)" \
        --output "$base/agreement-$year"
done

# 3. The checkpoint to publish: all ratings it may see, anchors, longer texts, contrasts, near copies, roles and opposites
validation=$WORK/wmt2018/validation.jsonl
[ -f "$base/held_out.jsonl" ] || python "$recipes/ship_ratings.py" --wmt2018 "$WORK/wmt2018" --number "$(of 12000)" \
    --output "$base/ratings.jsonl" --held-out "$base/held_out.jsonl"
for seed in $SEEDS; do
    train=$base/train-$seed
    if [ ! -f "$train.jsonl" ]; then
        bleurt-repro data anchors --ratings "$base/ratings.jsonl" --share 0.15 --seed "$seed" --output "$train-anchored.jsonl"
        bleurt-repro data contrasts --parallel "$DATA/en-de.tsv.gz" --parallel "$DATA/en-fr.tsv.gz" --leave-out multi30k \
            --reordered 0.4 --mirrored 0.25 --ratings "$base/ratings.jsonl" --pairs "$(of "$CONTRASTS")" --seed "$seed" \
            --output "$train-contrasts.jsonl"
        bleurt-repro data near-copies --input "$DATA/wiki.tsv.gz" --column 3 --ratings "$base/ratings.jsonl" \
            --pairs "$(of "$NEAR")" --seed "$seed" --output "$train-near-copies.jsonl"
        bleurt-repro data roles --pairs "$(of "$TEMPLATES")" --seed "$seed" --output "$train-roles.jsonl"
        bleurt-repro data opposites --pairs "$(of "$TEMPLATES")" --seed "$seed" --output "$train-opposites.jsonl"
        cat "$train-contrasts.jsonl" "$train-near-copies.jsonl" "$train-roles.jsonl" "$train-opposites.jsonl" \
            >"$train-more.jsonl"
        python "$recipes/training_set.py" --ratings "$train-anchored.jsonl" --joined "$(of "$LONGER")" --seed "$seed" \
            --output "$train-rated.jsonl"
        # all of them, and identical pairs of the other sentences, or copies of these get low scores
        python "$recipes/training_round.py" --train "$train-rated.jsonl" --number 1000000 \
            --identical "$(of 1000)" --empty "$(of 600)" \
            --identical-contrasts "$(of 3000)" --contrasts "$train-more.jsonl" --seed "$seed" --output "$train.jsonl"
    fi
    # shellcheck disable=SC2086  # the words of $SHIP_OPTIONS are options
    tune "$base/bleurt-repro-base-$seed" --num-train-epochs "$SHIP_EPOCHS" --max-length 256 \
        --model "${START:-$base/pretrained}" $SHIP_OPTIONS \
        --seed "$seed" --train-file "$train.jsonl" --validation-file "$validation"
done
[ -d "$base/bleurt-repro-base" ] || bleurt-repro average $(for seed in $SEEDS; do echo "$base/bleurt-repro-base-$seed"; done) \
    --dtype float8 --max-shard-size 45MB --output "$base/bleurt-repro-base"

# 4. Calibration and figures
sh "$recipes/measure.sh" "$base/bleurt-repro-base" "$base" "$base/held_out.jsonl" "$validation" chrf++ "bertscore@$LAYER:$ENCODER"

"$GPUMEM" share --size 1K
"$GPUMEM" share --processes 1
"$GPUMEM" share somewhere
"$GPUMEM" attach --number 1
"$GPUMEM" share --at "$(printf '%0108d' 0)"

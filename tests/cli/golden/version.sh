"$GPUMEM" --version

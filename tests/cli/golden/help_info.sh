"$GPUMEM" help info

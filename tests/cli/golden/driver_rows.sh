# The rows of one function in all its ABI versions, and the shape of the JSON.
"$GPUMEM" driver | grep '^cuMemcpyHtoD_v2' | awk '{print $1, $2, $3}'
"$GPUMEM" driver --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)
print(sorted({key for row in rows for key in row}))
print(len(rows), "rows,", len({row["api_name"] for row in rows}), "names")
print("real without a test:", [row["name"] for row in rows if row["status"] == "real" and not row["test"]])
print("not a status:", [row["name"] for row in rows if row["status"] not in ("real", "refused", "missing")])
'

#error "the executor does not have <cooperative_groups/scan.h>: scans of groups"

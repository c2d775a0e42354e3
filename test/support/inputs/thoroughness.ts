/**
 * Whether tests run on both kinds of database and randomized tests run for long: `.ci/run` sets
 * `HEARTH_TEST_THOROUGHLY=1`. Without it, `npm test` takes less than half the time.
 */
export const isThorough = process.env['HEARTH_TEST_THOROUGHLY'] === '1';

/**
 * Whether tests run on both kinds of database and randomized tests run for long: `.ci/run` sets
 * `HEARTH_TEST_THOROUGHLY=1`. Without it, `npm test` takes less than half the time.
 */
export const isThorough = process.env['HEARTH_TEST_THOROUGHLY'] === '1';

/** The number of runs of a randomized test that has `thorough` of them in thorough tests: a fifth of them otherwise. */
export const runs = (thorough: number): number => (isThorough ? thorough : Math.ceil(thorough / 5));

/**
 * Whether randomized tests run for long: `.ci/run` sets `HEARTH_TEST_THOROUGHLY=1`; without it, `npm test`
 * takes minutes.
 */
export const isThorough = process.env['HEARTH_TEST_THOROUGHLY'] === '1';

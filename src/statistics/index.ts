/** Statistics of the whole server: figures of each day, and usage reports. */
export type { DailyFigures, DayFigures } from './days/daily-figures.ts';
export { openStatistics, type ReportTarget, type StatisticsDeps } from './open.ts';

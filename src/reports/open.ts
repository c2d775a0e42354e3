import { Reports, type ReportsDeps } from './reports.ts';
import { reportRoutes } from './routes.ts';

/** Opens reports to the administrators. */
export const openReports = (deps: ReportsDeps) => ({ routes: reportRoutes(new Reports(deps)) });

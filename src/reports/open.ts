import { Reports, type ReportsDeps } from './reports.ts';
import { reportRoutes } from './routes.ts';

/** Opens reports to the administrators. */
export function openReports(deps: ReportsDeps) {
  const reports = new Reports(deps);
  return { reports, routes: reportRoutes(reports) };
}

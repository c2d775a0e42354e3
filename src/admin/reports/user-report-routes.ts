import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { Reports } from '../../reports/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageParameters } from '../paging/page-query.ts';
import { reportIdOf } from './report-id.ts';
import { reportPage } from './report-page.ts';
import type { ListedUserReport, UserReportList } from './user-report-list.ts';

const path = '/_server/admin/v1/user_reports';
const one = `${path}/:reportId` as const;

export interface UserReportDeps {
  readonly reports: Reports;
  readonly list: UserReportList;
  readonly cursors: PageCursors;
}

/** Lists, shows and deletes the reports of users. */
export function userReportRoutes(deps: UserReportDeps): Route[] {
  return [listRoute(deps), ...reportRoutes(deps)];
}

function listRoute(deps: UserReportDeps): Route {
  return route(
    {
      method: 'GET',
      path,
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        dir: Type.Optional(direction),
        user_id: Type.Optional(Type.String()),
        target_user_id: Type.Optional(Type.String()),
      }),
      response: Type.Object({
        user_reports: Type.Array(Type.Object({ id: Type.Integer() })),
        total: Type.Integer(),
        next_token: Type.Optional(Type.Integer()),
      }),
    },
    async (request) => {
      const { query } = request;
      const filter = { reporter: query.user_id, target: query.target_user_id };
      const { rows, rest } = await reportPage(deps, 'user reports', filter, request);
      return { user_reports: rows.map(reportJson), ...rest };
    },
  );
}

function reportRoutes({ reports, list }: UserReportDeps): Route[] {
  return [
    route(
      { method: 'GET', path: one, auth: 'admin', response: Type.Object({ id: Type.Integer() }) },
      async ({ params: { reportId } }) => {
        const report = await list.get(reportIdOf(reportId));
        if (report === undefined) throw notFound('User report not found');
        return reportJson(report);
      },
    ),
    route({ method: 'DELETE', path: one, auth: 'admin' }, async ({ params: { reportId } }) => {
      if (!(await reports.remove('user', reportIdOf(reportId)))) throw notFound('User report not found');
      return {};
    }),
  ];
}

const reportJson = (report: ListedUserReport) => ({
  id: report.id,
  received_ts: report.received_ts,
  target_user_id: report.user_id,
  user_id: report.reporter,
  reason: report.reason,
});

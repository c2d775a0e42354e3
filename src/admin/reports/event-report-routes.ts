import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { Reports } from '../../reports/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageParameters } from '../paging/page-query.ts';
import type { EventReportList, ListedReport } from './event-report-list.ts';
import { reportIdOf } from './report-id.ts';
import { reportPage } from './report-page.ts';

const path = '/_server/admin/v1/event_reports';
const one = `${path}/:reportId` as const;

export interface EventReportDeps {
  readonly reports: Reports;
  readonly engine: Pick<RoomReader, 'events'>;
  readonly list: EventReportList;
  readonly cursors: PageCursors;
}

/** Lists, shows and deletes the reports of events. */
export function eventReportRoutes(deps: EventReportDeps): Route[] {
  return [listRoute(deps), ...reportRoutes(deps)];
}

function listRoute(deps: EventReportDeps): Route {
  return route(
    {
      method: 'GET',
      path,
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        dir: Type.Optional(direction),
        user_id: Type.Optional(Type.String()),
        room_id: Type.Optional(Type.String()),
        event_sender_user_id: Type.Optional(Type.String()),
      }),
      response: Type.Object({
        event_reports: Type.Array(Type.Object({ id: Type.Integer() })),
        total: Type.Integer(),
        next_token: Type.Optional(Type.Integer()),
      }),
    },
    async (request) => {
      const { query } = request;
      const filter = {
        reporter: query.user_id,
        roomId: query.room_id,
        sender: query.event_sender_user_id,
      };
      const { rows, rest } = await reportPage(deps, 'event reports', filter, request);
      return { event_reports: rows.map(reportJson), ...rest };
    },
  );
}

function reportRoutes({ reports, engine, list }: EventReportDeps): Route[] {
  return [
    route(
      { method: 'GET', path: one, auth: 'admin', response: Type.Object({ id: Type.Integer() }) },
      async ({ params: { reportId } }) => {
        const report = await list.get(reportIdOf(reportId));
        if (report === undefined) throw notFound('Event report not found');
        const stored = await engine.events.getById(report.event_id ?? '');
        return { ...reportJson(report), event_json: stored?.event.pdu ?? {} };
      },
    ),
    route({ method: 'DELETE', path: one, auth: 'admin' }, async ({ params: { reportId } }) => {
      if (!(await reports.remove('event', reportIdOf(reportId)))) throw notFound('Event report not found');
      return {};
    }),
  ];
}

const reportJson = (report: ListedReport) => ({
  id: report.id,
  received_ts: report.received_ts,
  room_id: report.room_id,
  name: report.name,
  canonical_alias: report.canonical_alias,
  event_id: report.event_id,
  user_id: report.reporter,
  sender: report.user_id,
  reason: report.reason,
  score: report.score,
});

import { type TSchema, Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { Reports } from '../../reports/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageFrom, pageParameters } from '../paging/page-query.ts';
import { anyObject, integer, nothing } from '../response-fields.ts';
import { reportIdOf } from './report-id.ts';
import { type FilterColumn, type ReportKind, reportJson, reportKinds, schemasOf } from './report-kinds.ts';
import { ReportList, type ReportListDeps } from './report-list.ts';

export interface ReportRoutesDeps extends ReportListDeps {
  readonly reports: Reports;
  readonly engine: Pick<RoomReader, 'events'>;
  readonly cursors: PageCursors;
}

/** Lists, shows and deletes the reports of events, rooms and users. */
export const reportRoutes = (deps: ReportRoutesDeps): Route[] =>
  (['event', 'room', 'user'] as const).flatMap((kind) => {
    const list = new ReportList(deps, kind);
    return [listRoute(kind, list, deps), detailsRoute(kind, list, deps), deletionRoute(kind, deps)];
  });

const pathOf = (kind: ReportKind) => `/_server/admin/v1/${kind}_reports` as const;

function listRoute(kind: ReportKind, list: ReportList, { cursors }: ReportRoutesDeps): Route {
  const { title, filters } = reportKinds[kind];
  const parameters = Object.keys(filters).map((name) => [name, Type.Optional(Type.String())] as const);
  const members: Record<string, TSchema> = {
    [`${kind}_reports`]: Type.Array(Type.Object(schemasOf(kind))),
    total: integer,
    next_token: Type.Optional(integer),
  };
  return route(
    {
      operationId: `list${title}Reports`,
      method: 'GET',
      path: pathOf(kind),
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        dir: Type.Optional(direction),
        ...(Object.fromEntries(parameters) as object),
      }),
      response: Type.Object(members),
    },
    async ({ query, requester }) => {
      // The types of the query do not contain the filters, because each kind of reports has others.
      const given = query as { readonly [name: string]: unknown };
      const filter = Object.fromEntries(
        Object.entries(filters)
          .filter(([name]) => given[name] !== undefined)
          .map(([name, column]) => [column, given[name]]),
      ) as Partial<Record<FilterColumn, string>>;
      const newestFirst = query.dir !== 'f';
      const listed = {
        administrator: requester.userId,
        list: JSON.stringify([`${kind} reports`, filter, newestFirst]),
      };
      const { rows, next } = await pageFrom(cursors, listed, query, (start, limit) =>
        list.page(filter, newestFirst, start, limit),
      );
      return {
        [`${kind}_reports`]: rows.map((report) => reportJson(kind, report)),
        total: await list.count(filter),
        ...(next !== undefined && { next_token: next }),
      };
    },
  );
}

function detailsRoute(kind: ReportKind, list: ReportList, { engine }: ReportRoutesDeps): Route {
  const { title } = reportKinds[kind];
  const hasEvent = kind === 'event';
  return route(
    {
      operationId: `get${title}Report`,
      method: 'GET',
      path: `${pathOf(kind)}/:reportId`,
      auth: 'admin',
      response: Type.Object({ ...schemasOf(kind), ...(hasEvent && { event_json: anyObject }) }),
    },
    async ({ params: { reportId } }) => {
      const report = await list.get(reportIdOf(reportId));
      if (report === undefined) throw notFound(`${title} report not found`);
      if (!hasEvent) return reportJson(kind, report);
      const stored = await engine.events.getById(report.event_id ?? '');
      return { ...reportJson(kind, report), event_json: stored?.event.pdu ?? {} };
    },
  );
}

function deletionRoute(kind: ReportKind, { reports }: ReportRoutesDeps): Route {
  const { title } = reportKinds[kind];
  return route(
    {
      operationId: `delete${title}Report`,
      method: 'DELETE',
      path: `${pathOf(kind)}/:reportId`,
      auth: 'admin',
      response: nothing,
    },
    async ({ params: { reportId } }) => {
      if (!(await reports.remove(kind, reportIdOf(reportId)))) throw notFound(`${title} report not found`);
      return {};
    },
  );
}

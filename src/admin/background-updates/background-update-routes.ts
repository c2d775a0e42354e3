import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { nothing } from '../response-fields.ts';
import type { BackgroundUpdates } from './background-updates.ts';

const path = '/_server/admin/v1/background_updates';
const enabled = Type.Object({ enabled: Type.Boolean() });

/** The name of the database in responses. The reference server has several named databases. */
const databaseName = 'main';

/** Shows, pauses and starts background updates. */
export function backgroundUpdateRoutes(updates: BackgroundUpdates): Route[] {
  return [
    route(
      {
        operationId: 'getBackgroundUpdates',
        method: 'GET',
        path: `${path}/status`,
        auth: 'admin',
        response: Type.Object({
          enabled: Type.Boolean(),
          current_updates: Type.Record(
            Type.String(),
            Type.Object({
              name: Type.String(),
              total_item_count: Type.Integer(),
              total_duration_ms: Type.Number(),
              average_items_per_ms: Type.Number(),
            }),
          ),
        }),
      },
      async () => {
        const current = await updates.current();
        return {
          enabled: updates.isEnabled,
          current_updates: current ? { [databaseName]: json(current) } : {},
        };
      },
    ),
    route(
      {
        operationId: 'getBackgroundUpdatesEnabled',
        method: 'GET',
        path: `${path}/enabled`,
        auth: 'admin',
        response: enabled,
      },
      () => ({ enabled: updates.isEnabled }),
    ),
    route(
      {
        operationId: 'setBackgroundUpdatesEnabled',
        method: 'POST',
        path: `${path}/enabled`,
        auth: 'admin',
        body: Type.Object({ enabled: Type.Optional(Type.Boolean()) }),
        response: enabled,
      },
      ({ body }) => {
        updates.setEnabled(body.enabled ?? true);
        return { enabled: updates.isEnabled };
      },
    ),
    route(
      {
        operationId: 'startBackgroundUpdate',
        method: 'POST',
        path: `${path}/start_job`,
        auth: 'admin',
        body: Type.Object({ job_name: Type.String() }),
        response: nothing,
      },
      async ({ body }) => {
        await updates.start(body.job_name);
        return {};
      },
    ),
  ];
}

const json = ({ name, rows, duration }: { name: string; rows: number; duration: number }) => ({
  name,
  total_item_count: rows,
  total_duration_ms: duration,
  average_items_per_ms: duration > 0 ? rows / duration : 0,
});

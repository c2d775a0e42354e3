import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam } from '../../protocol/index.ts';
import type { DailyFigures, DayFigures } from '../../statistics/index.ts';

const day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });
const count = Type.Integer();

/** Serves the figures of each UTC day of a period. Days on which the server did not run are absent. */
export function dailyStatisticsRoute(figures: DailyFigures): Route {
  return route(
    {
      operationId: 'getDailyStatistics',
      method: 'GET',
      path: '/_server/admin/v1/statistics/days',
      auth: 'admin',
      query: Type.Object({ from_day: day, to_day: day }),
      response: Type.Object({
        days: Type.Array(
          Type.Object({
            day,
            users: count,
            active_users: count,
            rooms: count,
            messages: count,
            local_messages: count,
            media_bytes: count,
            database_bytes: count,
          }),
        ),
      }),
    },
    async ({ query: { from_day: from, to_day: to } }) => {
      for (const given of [from, to]) {
        if (!isDay(given)) throw invalidParam(`There is no day ${given}`);
      }
      if (from > to) throw invalidParam("'from_day' must not be after 'to_day'");
      return { days: (await figures.between(from, to)).map(dayJson) };
    },
  );
}

/** Whether the calendar has a day. @param text of the form `YYYY-MM-DD` */
function isDay(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** Returns the figures of a day as responses contain them. */
export const dayJson = (figures: DayFigures) => ({
  day: figures.day,
  users: figures.users,
  active_users: figures.activeUsers,
  rooms: figures.rooms,
  messages: figures.messages,
  local_messages: figures.localMessages,
  media_bytes: figures.mediaBytes,
  database_bytes: figures.databaseBytes,
});

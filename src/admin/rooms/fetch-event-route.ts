import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import { anyObject } from '../response-fields.ts';

/** Serves any stored event of any room, in the format of the server-server API. */
export function fetchEventRoute({ engine, clientEvents }: Pick<Rooms, 'engine' | 'clientEvents'>): Route {
  return route(
    {
      operationId: 'fetchEvent',
      method: 'GET',
      path: '/_server/admin/v1/fetch_event/:eventId',
      auth: 'admin',
      response: Type.Object({ event: anyObject }),
    },
    async ({ params: { eventId }, requester }) => {
      const stored = eventId.includes('\0') ? undefined : await engine.events.getById(eventId);
      if (!stored) throw notFound('Event not found');
      const [event] = await clientEvents.render([{ stored, membership: undefined }], requester, 'federation');
      return { event: { ...event, event_id: eventId } };
    },
  );
}

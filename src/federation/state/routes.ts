import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { ServedHistory, ServedState } from '../../room-federation/index.ts';
import type { RoomAccess } from '../room-access.ts';
import { streamedLists } from '../streamed-lists.ts';

export interface StateRoutesDeps {
  readonly access: RoomAccess;
  readonly state: ServedState;
  readonly history: Pick<ServedHistory, 'wasJoined'>;
}

const atEvent = Type.Object({ event_id: Type.String() });

/**
 * State and auth chain endpoints. Source: server-server API, "Retrieving events" for room states, "Retrieving
 * event authorisation information".
 */
export function stateRoutes({ access, state, history }: StateRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'getRoomState',
        method: 'GET',
        path: '/_proto/federation/v1/state/:roomId',
        auth: 'server',
        query: atEvent,
      },
      async ({ params, query, origin }) => {
        const head = await access.checkInRoomAt(origin, params.roomId, [query.event_id], history);
        const stateNids = await state.before(head, query.event_id);
        return streamedLists({
          auth_chain: state.jsonOf(stateNids.authChain),
          pdus: state.jsonOf(stateNids.state),
        });
      },
    ),
    route(
      {
        operationId: 'getRoomStateIds',
        method: 'GET',
        path: '/_proto/federation/v1/state_ids/:roomId',
        auth: 'server',
        query: atEvent,
        response: Type.Object({
          auth_chain_ids: Type.Array(Type.String()),
          pdu_ids: Type.Array(Type.String()),
        }),
      },
      async ({ params, query, origin }) => {
        const head = await access.checkInRoomAt(origin, params.roomId, [query.event_id], history);
        const stateNids = await state.before(head, query.event_id);
        return {
          auth_chain_ids: await state.eventIds(stateNids.authChain),
          pdu_ids: await state.eventIds(stateNids.state),
        };
      },
    ),
    route(
      {
        operationId: 'getEventAuth',
        method: 'GET',
        path: '/_proto/federation/v1/event_auth/:roomId/:eventId',
        auth: 'server',
      },
      async ({ params, origin }) => {
        const head = await access.checkInRoomAt(origin, params.roomId, [params.eventId], history);
        const chain = await state.authChainOf(head, params.eventId);
        return streamedLists({ auth_chain: state.jsonOf(chain) });
      },
    ),
  ];
}

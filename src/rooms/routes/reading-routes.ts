import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { readFilter } from '../../filters/index.ts';
import { type AccessCheck, Reply, type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { HistoryReader } from '../history/history-reader.ts';
import type { TextOrStream } from '../history/long-answers.ts';
import type { StateReader } from '../history/state-reader.ts';
import type { Rooms } from '../rooms.ts';
import { clientPath } from './paths.ts';
import { readAccess } from './read-access.ts';

const event = Type.Unsafe<JsonObject>(Type.Object({}));
const events = Type.Array(event);

/** Number of events per page when the request has no limit. */
const defaultLimit = 10;

/**
 * Endpoints that read events and state of rooms. Source: client-server API, "Getting events for a room".
 * @param maxEventsPerPage the largest page (`filter_timeline_limit`)
 */
export function readingRoutes(
  { engine, historyReader, stateReader }: Pick<Rooms, 'engine' | 'historyReader' | 'stateReader'>,
  maxEventsPerPage: number,
): Route[] {
  const limitOf = (requested: number | undefined) =>
    Math.max(0, Math.min(requested ?? defaultLimit, maxEventsPerPage));
  const checkAccess = readAccess(engine);
  return [
    ...pageRoutes(historyReader, checkAccess, limitOf),
    ...stateRoutes(stateReader, checkAccess),
    ...memberRoutes(historyReader, stateReader, checkAccess),
  ];
}

function pageRoutes(
  historyReader: HistoryReader,
  checkAccess: AccessCheck,
  limitOf: (requested: number | undefined) => number,
): Route[] {
  return [
    route(
      {
        operationId: 'getRoomEvents',
        limitedKind: 'large response',
        method: 'GET',
        path: clientPath('/rooms/:roomId/messages'),
        auth: 'guest',
        checkAccess,
        query: Type.Object({
          from: Type.Optional(Type.String()),
          to: Type.Optional(Type.String()),
          // The specification requires `dir`, but some programs leave it out: then it is `f`.
          dir: Type.Optional(Type.Union([Type.Literal('f'), Type.Literal('b')])),
          limit: Type.Optional(Type.Integer({ minimum: 0 })),
          filter: Type.Optional(Type.String()),
        }),
        response: Type.Object({ start: Type.String(), end: Type.Optional(Type.String()), chunk: events }),
      },
      ({ params, query, requester }) => {
        const filter = readFilter(query.filter);
        return historyReader.messages(requester, params.roomId, {
          // Some clients send an empty token instead of no token.
          from: query.from === '' ? undefined : query.from,
          to: query.to === '' ? undefined : query.to,
          direction: query.dir === 'b' ? 'backward' : 'forward',
          limit: limitOf(query.limit ?? filter.limit),
          filter,
        });
      },
    ),
    route(
      {
        operationId: 'getEventContext',
        limitedKind: 'large response',
        method: 'GET',
        path: clientPath('/rooms/:roomId/context/:eventId'),
        auth: 'guest',
        checkAccess,
        query: Type.Object({
          limit: Type.Optional(Type.Integer({ minimum: 0 })),
          filter: Type.Optional(Type.String()),
        }),
        response: event,
      },
      ({ params, query, requester }) => {
        const filter = readFilter(query.filter);
        const limit = limitOf(query.limit ?? filter.limit);
        return historyReader.context(requester, params.roomId, params.eventId, { limit, filter });
      },
    ),
  ];
}

function stateRoutes(stateReader: StateReader, checkAccess: AccessCheck): Route[] {
  const contract = {
    operationId: 'getRoomStateWithKey',
    method: 'GET',
    auth: 'guest',
    checkAccess,
    response: event,
  } as const;
  const query = Type.Object({
    format: Type.Optional(Type.Union([Type.Literal('content'), Type.Literal('event')])),
  });
  return [
    route(
      {
        operationId: 'getRoomState',
        limitedKind: 'large response',
        method: 'GET',
        path: clientPath('/rooms/:roomId/state'),
        auth: 'guest',
        response: events,
      },
      async (request) =>
        jsonReply(await stateReader.allAsText(request.requester, request.params.roomId, request)),
    ),
    route(
      { ...contract, query, path: clientPath('/rooms/:roomId/state/:eventType/:stateKey') },
      async (request) => {
        const { params, query, requester } = request;
        const stateEvent = await stateReader.one(
          requester,
          params.roomId,
          params.eventType,
          params.stateKey,
          request,
        );
        return query.format === 'event' ? stateEvent : stateEvent.content;
      },
    ),
    route(
      {
        ...contract,
        query,
        path: [
          '/_proto/client/v3/rooms/:roomId/state/:eventType',
          '/_proto/client/r0/rooms/:roomId/state/:eventType',
          '/_proto/client/v3/rooms/:roomId/state/:eventType/',
          '/_proto/client/r0/rooms/:roomId/state/:eventType/',
        ],
      },
      async ({ params, query: { format }, requester }) => {
        const stateEvent = await stateReader.one(requester, params.roomId, params.eventType, '');
        return format === 'event' ? stateEvent : stateEvent.content;
      },
    ),
  ];
}

function memberRoutes(
  historyReader: HistoryReader,
  stateReader: StateReader,
  checkAccess: AccessCheck,
): Route[] {
  return [
    route(
      {
        operationId: 'getMembersByRoom',
        limitedKind: 'large response',
        method: 'GET',
        path: clientPath('/rooms/:roomId/members'),
        auth: 'guest',
        checkAccess,
        query: Type.Object({
          at: Type.Optional(Type.String()),
          membership: Type.Optional(Type.String()),
          not_membership: Type.Optional(Type.String()),
        }),
        response: Type.Object({ chunk: events }),
      },
      async (request) => {
        const { params, query, requester } = request;
        const { at, membership, not_membership: notMembership } = query;
        const filter = { at, membership, notMembership };
        return jsonReply(await stateReader.membersAsText(requester, params.roomId, filter, request));
      },
    ),
    route(
      {
        operationId: 'getJoinedMembersByRoom',
        limitedKind: 'large response',
        method: 'GET',
        path: clientPath('/rooms/:roomId/joined_members'),
        auth: 'guest',
        response: Type.Object({ joined: Type.Unsafe<Record<string, JsonObject>>(Type.Object({})) }),
      },
      async (request) => {
        const { params, requester } = request;
        return jsonReply(await stateReader.joinedMembersAsText(requester.userId, params.roomId, request));
      },
    ),
    route(
      {
        operationId: 'getJoinedRooms',
        method: 'GET',
        path: clientPath('/joined_rooms'),
        auth: 'guest',
        response: Type.Object({ joined_rooms: Type.Array(Type.String()) }),
      },
      async ({ requester }) => ({ joined_rooms: await historyReader.joinedRooms(requester.userId) }),
    ),
  ];
}

/** Returns a response with JSON text. */
const jsonReply = (text: TextOrStream): Reply =>
  text instanceof Readable ? new Reply(200, text, streamHeaders) : new Reply(200, text);

/** The headers of a streamed response: the same as those that `Reply` sets for a text. */
const streamHeaders = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };

import { Type } from 'typebox';
import { type RateCheck, type Requester, type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, type JsonObject } from '../../protocol/index.ts';
import type { Sender, Sending } from '../sending.ts';
import { clientPath } from './paths.ts';
import { reasonField, reasonOf, type WithReason } from './reason.ts';

/** An event to send later. */
export interface EventToDelay {
  readonly roomId: string;
  readonly type: string;
  /** Present for state events. */
  readonly stateKey?: string | undefined;
  readonly content: JsonObject;
  /** Absent when the request has no transaction id, as for state events. */
  readonly txnId?: string | undefined;
}

/** Schedules delayed events; supplied at composition. Source: MSC4140. */
export interface DelayedSending {
  /**
   * @param delay milliseconds
   * @returns the delay id
   * @throws MatrixError when delayed events are disabled, the delay is too short or too long, or a limit is exceeded
   */
  schedule(sender: Sender, event: EventToDelay, delay: number): Promise<string>;
}

const content = Type.Unsafe<JsonObject>(Type.Object({}));
const sentResponse = Type.Object({ event_id: Type.String() });
const sentOrDelayedResponse = Type.Union([sentResponse, Type.Object({ delay_id: Type.String() })]);

/** Query parameter for the delay of an event in milliseconds: the first form of MSC4140, which clients use. */
const delayKey = 'org.matrix.msc4140.delay';
/**
 * Query parameter for the id of a parent delayed event, in an earlier form of MSC4140. A request with this parameter is
 * refused: without support for parents, its event would be sent at once, and its client does not expect that.
 */
const parentKey = 'org.matrix.msc4140.parent_delay_id';
const delayQuery = { [delayKey]: Type.Optional(Type.Integer()), [parentKey]: Type.Optional(Type.String()) };

/**
 * Query parameter for the `origin_server_ts` of an event, in milliseconds since the epoch; for application services.
 */
const timeQuery = { ts: Type.Optional(Type.Integer()) };

/**
 * Returns the requested `origin_server_ts`, which only application services can set; `undefined` means now.
 * Source: application service API, "Timestamp massaging".
 * @throws MatrixError M_INVALID_PARAM
 */
function requestedTime({ ts }: { ts?: number }, { appservice }: Requester): number | undefined {
  if (appservice === undefined || ts === undefined) return undefined;
  if (ts < 0 || !Number.isSafeInteger(ts)) throw invalidParam('ts must be a non-negative integer');
  return ts;
}

/**
 * Returns the requested delay in milliseconds; `undefined` sends the event at once.
 * @throws MatrixError M_INVALID_PARAM for a request with a parent delayed event
 */
function requestedDelay(query: { [delayKey]?: number; [parentKey]?: string }): number | undefined {
  if (query[parentKey] !== undefined) {
    throw invalidParam('parent_delay_id is not supported');
  }
  return query[delayKey];
}

/**
 * Returns a function that checks the rate limit before the content of an event is read. Requests with a delay pass,
 * because their transaction ids are those of delayed events, which `Sending` does not know.
 */
function checkRate(sending: Sending): RateCheck {
  return ({ requester, params: { roomId = '', eventType = '', txnId }, query }) => {
    const isDelayed = (query as { [delayKey]?: number })[delayKey] !== undefined;
    return requester && !isDelayed ? sending.checkRate(requester, roomId, eventType, txnId) : undefined;
  };
}

/**
 * Endpoints that send events, state and redactions. Source: client-server API, "Sending events to a room" and
 * "Redactions".
 */
export function sendingRoutes(sending: Sending, delayed: DelayedSending): Route[] {
  return [
    route(
      {
        operationId: 'sendMessage',
        method: 'PUT',
        path: clientPath('/rooms/:roomId/send/:eventType/:txnId'),
        auth: 'guest',
        query: Type.Object({ ...timeQuery, ...delayQuery }),
        body: content,
        needsBody: true,
        checkRate: checkRate(sending),
        response: sentOrDelayedResponse,
      },
      async ({ params, body, query, requester }) => {
        const milliseconds = requestedDelay(query);
        if (milliseconds !== undefined) {
          const { roomId, eventType: type, txnId } = params;
          const event = { roomId, type, content: body, txnId };
          return { delay_id: await delayed.schedule(requester, event, milliseconds) };
        }
        const originServerTs = requestedTime(query, requester);
        const message = { type: params.eventType, content: body, originServerTs };
        return { event_id: await sending.message(requester, params.roomId, message, params.txnId) };
      },
    ),
    route(
      {
        operationId: 'redactEvent',
        method: 'PUT',
        path: clientPath('/rooms/:roomId/redact/:eventId/:txnId'),
        auth: 'guest',
        body: Type.Object(reasonField),
        response: sentResponse,
      },
      async ({ params, body, requester }) => {
        const { roomId, eventId, txnId } = params;
        return { event_id: await sending.redact(requester, roomId, eventId, redactionContent(body), txnId) };
      },
    ),
    ...postRoutes(sending),
    ...stateRoutes(sending, delayed),
  ];
}

/** Returns the content of a redaction: the reason and the other fields of the body, such as the marks of bridges. */
function redactionContent(body: WithReason): JsonObject {
  const { reason: _reason, ...fields } = body;
  return { ...fields, ...reasonOf(body) };
}

/** Routes, which the specification does not have, for scripts that send and redact without a transaction id. */
function postRoutes(sending: Sending): Route[] {
  return [
    route(
      {
        actsAs: 'sendMessage',
        method: 'POST',
        path: clientPath('/rooms/:roomId/send/:eventType'),
        auth: 'guest',
        query: Type.Object(timeQuery),
        body: content,
        needsBody: true,
        checkRate: checkRate(sending),
        response: sentResponse,
      },
      async ({ params: { roomId, eventType: type }, body, query, requester }) => {
        const message = { type, content: body, originServerTs: requestedTime(query, requester) };
        return { event_id: await sending.message(requester, roomId, message) };
      },
    ),
    route(
      {
        actsAs: 'redactEvent',
        method: 'POST',
        path: clientPath('/rooms/:roomId/redact/:eventId'),
        auth: 'guest',
        body: Type.Object(reasonField),
        response: sentResponse,
      },
      async ({ params: { roomId, eventId }, body, requester }) => ({
        event_id: await sending.redact(requester, roomId, eventId, redactionContent(body)),
      }),
    ),
  ];
}

function stateRoutes(sending: Sending, delayed: DelayedSending): Route[] {
  const send = async (
    requester: Requester,
    { roomId, eventType: type, stateKey }: { roomId: string; eventType: string; stateKey: string },
    body: JsonObject,
    query: Parameters<typeof requestedDelay>[0] & { ts?: number },
  ) => {
    const milliseconds = requestedDelay(query);
    if (milliseconds === undefined) {
      const target = { type, stateKey, originServerTs: requestedTime(query, requester) };
      return { event_id: await sending.state(requester, roomId, target, body) };
    }
    const event = { roomId, type, stateKey, content: body };
    return { delay_id: await delayed.schedule(requester, event, milliseconds) };
  };
  const contract = {
    operationId: 'setRoomStateWithKey',
    method: 'PUT',
    auth: 'guest',
    query: Type.Object({ ...timeQuery, ...delayQuery }),
    body: content,
    needsBody: true,
    checkRate: checkRate(sending),
    response: sentOrDelayedResponse,
  } as const;
  return [
    route(
      { ...contract, path: clientPath('/rooms/:roomId/state/:eventType/:stateKey') },
      ({ params, body, query, requester }) => send(requester, params, body, query),
    ),
    // The trailing slash is optional for an empty state key.
    route(
      {
        ...contract,
        path: [
          '/_proto/client/v3/rooms/:roomId/state/:eventType',
          '/_proto/client/r0/rooms/:roomId/state/:eventType',
          '/_proto/client/v3/rooms/:roomId/state/:eventType/',
          '/_proto/client/r0/rooms/:roomId/state/:eventType/',
        ],
      },
      ({ params, body, query, requester }) => send(requester, { ...params, stateKey: '' }, body, query),
    ),
  ];
}

import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import { badJson, invalidParam, type JsonObject, MatrixError, missingParam } from '../protocol/index.ts';
import type { ActionLimit } from '../rooms/index.ts';
import { type DelayedEvent, delayedEventJson } from './delayed-event.ts';
import type { Action, DelayedEvents } from './delayed-events.ts';

/** Returns the stable path of the proposal, and the unstable path that clients use. */
const paths = <const V extends string, const P extends string>(version: V, path: P) =>
  [`/_proto/client/${version}${path}`, `/_proto/client/unstable/org.matrix.msc4140${path}`] as const;

/** Returns the routes of delayed events. Source: MSC4140, "Cancellable delayed events". @param limit `rc_delayed_event_mgmt` */
export function delayedEventRoutes(events: DelayedEvents, limit: ActionLimit): Route[] {
  return [schedulingRoute(events), ...readingRoutes(events, limit), ...actionRoutes(events, limit)];
}

function schedulingRoute(events: DelayedEvents): Route {
  return route(
    {
      actsAs: 'sendMessage',
      method: 'PUT',
      path: paths('v3', '/rooms/:roomId/delayed_event/:eventType/:txnId'),
      auth: 'guest',
      body: Type.Object({
        delay: Type.Optional(Type.Integer()),
        delay_ms: Type.Optional(Type.Integer()),
        state_key: Type.Optional(Type.String()),
        content: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
      }),
      response: Type.Object({ delay_id: Type.String() }),
    },
    async ({ params: { roomId, eventType: type, txnId }, body, requester }) => {
      const earlier = await events.earlierDelayId(requester, { roomId, type, txnId });
      if (earlier !== undefined) return { delay_id: earlier };
      const { delay_ms: delay = body.delay, content, state_key: stateKey } = body;
      if (delay === undefined) throw missingParam('delay is missing');
      if (content === undefined) throw badJson('content is missing');
      const event = { roomId, type, stateKey, content, txnId };
      return { delay_id: await events.scheduleByOwnEndpoint(requester, event, delay) };
    },
  );
}

function readingRoutes(events: DelayedEvents, limit: ActionLimit): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: paths('v1', '/delayed_events'),
        auth: 'guest',
        query: Type.Object({
          status: Type.Optional(Type.Union([Type.Literal('scheduled'), Type.Literal('finalised')])),
          delay_id: Type.Optional(Type.Array(Type.String(), { maxItems: 1_000 })),
        }),
      },
      async ({ query, requester }) => {
        if (!requester.isUnlimited) limit.take(limitKey(requester));
        const { delay_id: ids } = query;
        const all = (await events.list(requester.userId)).filter(
          ({ delayId }) => ids?.includes(delayId) ?? true,
        );
        return listJson(all, query.status);
      },
    ),
    route(
      { method: 'GET', path: paths('v1', '/delayed_events/:delayId'), auth: 'guest' },
      async ({ params, requester }) => {
        if (!requester.isUnlimited) limit.take(limitKey(requester));
        return delayedEventJson(await events.one(requester.userId, params.delayId));
      },
    ),
  ];
}

/**
 * Returns the routes that send, cancel or restart a delayed event. The id of the event authorizes the request, so that
 * a client can let another program send it.
 */
function actionRoutes(events: DelayedEvents, limit: ActionLimit): Route[] {
  const act = async (delayId: string, action: Action, requester: Requester | undefined, ip: string) => {
    if (!requester?.isUnlimited) limit.take(requester ? limitKey(requester) : ip);
    await events.act(delayId, action);
    return {};
  };
  return [
    route(
      {
        method: 'POST',
        path: paths('v1', '/delayed_events/:delayId'),
        auth: 'optional',
        body: Type.Object({ action: Type.Optional(Type.String()) }),
      },
      ({ params, body, requester, ip }) => {
        if (body.action === undefined) throw missingParam('action is missing');
        if (!isAction(body.action)) throw invalidParam('The action must be send, cancel or restart');
        return act(params.delayId, body.action, requester, ip);
      },
    ),
    route(
      { method: 'POST', path: paths('v1', '/delayed_events/:delayId/:action'), auth: 'optional' },
      ({ params, requester, ip }) => {
        // An unknown action is an unknown path.
        if (!isAction(params.action)) throw new MatrixError(404, 'M_UNRECOGNIZED', 'Unknown action');
        return act(params.delayId, params.action, requester, ip);
      },
    ),
  ];
}

/** Rate limits are per user and device. */
const limitKey = ({ userId, deviceId = '' }: Requester) => `${userId} ${deviceId}`;

const isAction = (text: string): text is Action => ['send', 'cancel', 'restart'].includes(text);

/** Returns the list with the members of the first revision of MSC4140 and the members of later revisions. */
function listJson(all: readonly DelayedEvent[], status: 'scheduled' | 'finalised' | undefined): JsonObject {
  const scheduled = all.filter(({ finalised }) => !finalised).map(delayedEventJson);
  const ended = all.filter(({ finalised }) => finalised);
  return {
    delayed_events: status === 'finalised' ? ended.map(delayedEventJson) : scheduled,
    ...(status === 'finalised' ? undefined : { scheduled }),
    ...(status === 'scheduled' ? undefined : { finalised: ended.map(endedJson) }),
  };
}

function endedJson(event: DelayedEvent): JsonObject {
  const { finalised, ...waiting } = event;
  return {
    delayed_event: delayedEventJson({ ...waiting, finalised: undefined }),
    outcome: finalised?.outcome === 'send' ? 'send' : 'cancel',
    reason: finalised?.outcome === 'error' ? 'error' : (finalised?.reason ?? 'action'),
    ...(finalised?.error && { error: finalised.error }),
    ...(finalised?.eventId === undefined ? undefined : { event_id: finalised.eventId }),
    origin_server_ts: finalised?.ts ?? 0,
  };
}

import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import { complexityRoute } from './complexity-route.ts';
import { EventTemplates } from './event-templates.ts';
import type { HandshakeDeps } from './handshake-deps.ts';
import { Invites } from './invites.ts';
import { sendJoinResponse } from './send-join-response.ts';
import { SubmittedEvents } from './submitted-events.ts';
import { exchangeThirdPartyInvite } from './third-party-exchange.ts';

const v1 = '/_proto/federation/v1';
const v2 = '/_proto/federation/v2';
const pdu = Type.Unsafe<JsonObject>(Type.Object({}));
const emptyObject = Type.Object({});
const template = Type.Object({ room_version: Type.String(), event: pdu });

/** Maximum number of supported room versions that a request may name. */
const maxVersions = 1_000;

/** Maximum number of events of stripped state in an invite. */
const maxStrippedEvents = 1_000;

const versions = (fallback?: readonly string[]) =>
  Type.Object({
    ver: Type.Array(Type.String(), {
      maxItems: maxVersions,
      ...(fallback !== undefined && { default: fallback }),
    }),
  });

/**
 * Handshake endpoints. Source: server-server API, "Joining Rooms", "Knocking upon a room", "Inviting to a
 * room", "Leaving Rooms" and "Third-party invites".
 */
export function membershipHandshakeRoutes(deps: HandshakeDeps): Route[] {
  return [
    ...templateRoutes(new EventTemplates(deps)),
    ...joinRoutes(deps, new SubmittedEvents(deps)),
    ...submitRoutes(new SubmittedEvents(deps)),
    ...inviteRoutes(new Invites(deps)),
    exchangeRoute(deps),
    complexityRoute(deps),
  ];
}

function templateRoutes(templates: EventTemplates): Route[] {
  return [
    route(
      {
        operationId: 'makeJoin',
        method: 'GET',
        path: `${v1}/make_join/:roomId/:userId`,
        auth: 'server',
        query: versions(['1']),
        response: template,
      },
      ({ origin, params, query }) => templates.prepare(origin, 'join', { ...params, versions: query.ver }),
    ),
    route(
      {
        operationId: 'makeKnock',
        method: 'GET',
        path: `${v1}/make_knock/:roomId/:userId`,
        auth: 'server',
        query: versions(),
        response: template,
      },
      ({ origin, params, query }) => templates.prepare(origin, 'knock', { ...params, versions: query.ver }),
    ),
    route(
      {
        operationId: 'makeLeave',
        method: 'GET',
        path: `${v1}/make_leave/:roomId/:userId`,
        auth: 'server',
        response: template,
      },
      ({ origin, params }) => templates.prepare(origin, 'leave', params),
    ),
  ];
}

function joinRoutes(deps: HandshakeDeps, submittedEvents: SubmittedEvents): Route[] {
  return [
    route(
      {
        operationId: 'sendJoinV1',
        method: 'PUT',
        path: `${v1}/send_join/:roomId/:eventId`,
        auth: 'server',
        body: pdu,
      },
      async ({ origin, params, body }) => {
        const accepted = await submittedEvents.join(origin, { ...params, event: body });
        // A response of v1 is an array: the status, and the response of v2.
        return sendJoinResponse(deps, accepted, { omitMembers: false, around: ['[200,', ']'] });
      },
    ),
    route(
      {
        operationId: 'sendJoinV2',
        method: 'PUT',
        path: `${v2}/send_join/:roomId/:eventId`,
        auth: 'server',
        query: Type.Object({ omit_members: Type.Boolean({ default: false }) }),
        body: pdu,
      },
      async ({ origin, params, query, body }) => {
        const accepted = await submittedEvents.join(origin, { ...params, event: body });
        return sendJoinResponse(deps, accepted, { omitMembers: query.omit_members });
      },
    ),
  ];
}

function submitRoutes(submittedEvents: SubmittedEvents): Route[] {
  return [
    route(
      {
        operationId: 'sendLeaveV1',
        method: 'PUT',
        path: `${v1}/send_leave/:roomId/:eventId`,
        auth: 'server',
        body: pdu,
      },
      async ({ origin, params, body }) => {
        await submittedEvents.leave(origin, { ...params, event: body });
        return [200, {}];
      },
    ),
    route(
      {
        operationId: 'sendLeaveV2',
        method: 'PUT',
        path: `${v2}/send_leave/:roomId/:eventId`,
        auth: 'server',
        body: pdu,
        response: emptyObject,
      },
      async ({ origin, params, body }) => {
        await submittedEvents.leave(origin, { ...params, event: body });
        return {};
      },
    ),
    route(
      {
        operationId: 'sendKnock',
        method: 'PUT',
        path: `${v1}/send_knock/:roomId/:eventId`,
        auth: 'server',
        body: pdu,
        response: Type.Object({ knock_room_state: Type.Array(pdu) }),
      },
      async ({ origin, params, body }) => ({
        knock_room_state: await submittedEvents.knock(origin, { ...params, event: body }),
      }),
    ),
  ];
}

function inviteRoutes(invites: Invites): Route[] {
  return [
    route(
      {
        operationId: 'sendInviteV1',
        method: 'PUT',
        path: `${v1}/invite/:roomId/:eventId`,
        auth: 'server',
        body: pdu,
      },
      async ({ origin, params, body: event }) => {
        const { unsigned } = event;
        const inviteRoomState = asList(isJsonObject(unsigned) ? unsigned['invite_room_state'] : undefined);
        const invite = { ...params, roomVersion: undefined, event, inviteRoomState };
        return [200, { event: await invites.receive(origin, invite) }];
      },
    ),
    route(
      {
        operationId: 'sendInviteV2',
        method: 'PUT',
        path: `${v2}/invite/:roomId/:eventId`,
        auth: 'server',
        body: Type.Object({
          room_version: Type.String(),
          event: pdu,
          invite_room_state: Type.Optional(
            Type.Array(Type.Unsafe<JsonValue>(Type.Unknown()), { maxItems: maxStrippedEvents }),
          ),
        }),
        response: Type.Object({ event: pdu }),
      },
      async ({ origin, params, body }) => {
        const { room_version: roomVersion, event, invite_room_state: inviteRoomState = [] } = body;
        return { event: await invites.receive(origin, { ...params, roomVersion, event, inviteRoomState }) };
      },
    ),
  ];
}

const asList = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : [];

function exchangeRoute(deps: HandshakeDeps): Route {
  return route(
    {
      operationId: 'exchangeThirdPartyInvite',
      method: 'PUT',
      path: `${v1}/exchange_third_party_invite/:roomId`,
      auth: 'server',
      body: pdu,
      response: emptyObject,
    },
    async ({ origin, params, body }) => {
      await exchangeThirdPartyInvite(deps, origin, params.roomId, body);
      return {};
    },
  );
}

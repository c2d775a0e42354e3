import {
  getRoomVersion,
  isJsonObject,
  isUserId,
  type JsonObject,
  type RoomVersion,
  serverOfUser,
} from '../../../protocol/index.ts';
import { HandshakeFailure } from '../handshake.ts';
import type { EventTemplate, HandshakeMembership } from '../peers.ts';
import { type GraphReferences, graphReferences } from './event-from-template.ts';

/** The request that the remote server answered with the event template. */
export interface ExpectedTemplate {
  readonly server: string;
  readonly roomId: string;
  readonly userId: string;
  readonly membership: HandshakeMembership;
  /** The room version for responses that do not name one; by default 1, as specified. */
  readonly defaultVersion?: string;
}

/** The checked parts of an event template. */
export interface CheckedTemplate {
  readonly version: RoomVersion;
  readonly references: GraphReferences;
  /** The user of the remote server who authorises the join to a restricted room. */
  readonly authoriser: string | undefined;
}

/**
 * Checks that an event template is for the requested membership, before any part of it is signed.
 * Source: server-server API, `GET /_matrix/federation/v1/make_join/{roomId}/{userId}`, and for `make_leave`
 * and `make_knock`.
 * @throws HandshakeFailure
 */
export function checkTemplate(prepared: EventTemplate, expected: ExpectedTemplate): CheckedTemplate {
  const { server, roomId, userId, membership, defaultVersion = '1' } = expected;
  const { event } = prepared;
  const version = getRoomVersion(prepared.roomVersion ?? defaultVersion);
  if (!version) throw new HandshakeFailure(server, 'the event template has an unknown room version');
  if (membership === 'knock' && !version.knock) {
    throw new HandshakeFailure(server, 'the room version does not support knocking');
  }
  const content = isJsonObject(event['content']) ? event['content'] : {};
  const isExpected =
    event['type'] === 'm.room.member' &&
    event['room_id'] === roomId &&
    event['sender'] === userId &&
    event['state_key'] === userId &&
    content['membership'] === membership;
  if (!isExpected) throw new HandshakeFailure(server, 'the event template is not what was requested');
  const authoriser =
    membership === 'join' && version.restricted ? content['join_authorised_via_users_server'] : undefined;
  const references = referencesOf(server, event, version);
  if (authoriser === undefined) return { version, references, authoriser: undefined };
  if (!isUserId(authoriser) || serverOfUser(authoriser) !== server) {
    throw new HandshakeFailure(server, 'the join is not authorised by a user of that server');
  }
  return { version, references, authoriser };
}

function referencesOf(server: string, event: JsonObject, version: RoomVersion): GraphReferences {
  try {
    return graphReferences(event, version);
  } catch (cause) {
    throw new HandshakeFailure(server, 'the event template has invalid references', { cause });
  }
}

import {
  getRoomVersion,
  isJsonObject,
  isUserId,
  type JsonObject,
  type RoomVersion,
  serverOfUser,
} from '../../../protocol/index.ts';
import { HandshakeFailure } from '../handshake-failure.ts';
import type { EventTemplate, HandshakeMembership } from '../peers.ts';
import { type GraphReferences, graphReferences } from './event-from-template.ts';

/** What the template of another server must be about. */
export interface ExpectedTemplate {
  readonly server: string;
  readonly roomId: string;
  readonly userId: string;
  readonly membership: HandshakeMembership;
  /** The version of the room as it is known here, for templates that do not say it; by default 1, as is specified. */
  readonly defaultVersion?: string;
}

/** What may be taken from a template. */
export interface CheckedTemplate {
  readonly version: RoomVersion;
  readonly references: GraphReferences;
  /** The user of that server in whose name it lets somebody into a restricted room. */
  readonly authoriser: string | undefined;
}

/**
 * Checks that a template is what was asked for, before anything of it is signed.
 * Source: server-server API, `GET /_matrix/federation/v1/make_join/{roomId}/{userId}` and the like.
 * @throws HandshakeFailure
 */
export function checkTemplate(prepared: EventTemplate, expected: ExpectedTemplate): CheckedTemplate {
  const { server, roomId, userId, membership, defaultVersion: usualVersion = '1' } = expected;
  const { event } = prepared;
  const version = getRoomVersion(prepared.roomVersion ?? usualVersion);
  if (!version) throw new HandshakeFailure(server, 'the template has a room version that is not known');
  if (membership === 'knock' && !version.knock) {
    throw new HandshakeFailure(server, 'the room has a version in which nobody can knock');
  }
  const content = isJsonObject(event['content']) ? event['content'] : {};
  const isExpected =
    event['type'] === 'm.room.member' &&
    event['room_id'] === roomId &&
    event['sender'] === userId &&
    event['state_key'] === userId &&
    content['membership'] === membership;
  if (!isExpected) throw new HandshakeFailure(server, 'the template is not what was asked for');
  const authoriser =
    membership === 'join' && version.restricted ? content['join_authorised_via_users_server'] : undefined;
  const place = placeOf(server, event, version);
  if (authoriser === undefined) return { version, references: place, authoriser: undefined };
  if (!isUserId(authoriser) || serverOfUser(authoriser) !== server) {
    throw new HandshakeFailure(server, 'the template is authorised by a user of another server');
  }
  return { version, references: place, authoriser };
}

function placeOf(server: string, event: JsonObject, version: RoomVersion): GraphReferences {
  try {
    return graphReferences(event, version);
  } catch (cause) {
    throw new HandshakeFailure(server, 'the template has no place in the history', { cause });
  }
}

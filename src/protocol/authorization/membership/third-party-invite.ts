import { isSignedWithAnyKey } from '../../crypto/any-key.ts';
import type { RoomEvent } from '../../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json.ts';
import { membershipOf } from '../room-state.ts';
import { ownProperty } from '../select-auth-events.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/** Rule 5.4.1: an invitation that redeems an earlier `m.room.third_party_invite`. */
export function authorizeThirdPartyInvite(change: MembershipChange, invite: JsonValue): Verdict {
  const { event, target, room } = change;
  // 5.4.1.1
  if (membershipOf(room, target) === 'ban') return reject('the user is banned');
  // 5.4.1.2
  const signed = ownProperty(invite, 'signed');
  if (signed === undefined) return reject('the third-party invite has no signed part');
  // 5.4.1.3
  const mxid = ownProperty(signed, 'mxid');
  const token = ownProperty(signed, 'token');
  if (mxid === undefined || token === undefined) return reject('the signed part has no mxid or no token');
  // 5.4.1.4
  if (mxid !== target) return reject('the third-party invite is for another user');
  // 5.4.1.5
  const earlier = typeof token === 'string' ? room.lookup('m.room.third_party_invite', token) : undefined;
  if (earlier === undefined) return reject('there is no third-party invite with that token');
  // 5.4.1.6
  if (event.sender !== earlier.sender) return reject('somebody else sent the third-party invite');
  // 5.4.1.7, 5.4.1.8
  const isSigned = isJsonObject(signed) && isSignedByKeyOf(earlier, event, signed);
  return allowIf(isSigned, 'no key of the third-party invite has signed');
}

const verified = new WeakMap<RoomEvent, WeakMap<RoomEvent, boolean>>();

/** Signatures are slow to verify and state resolution asks again, so what was found is kept with the events. */
function isSignedByKeyOf(earlier: RoomEvent, event: RoomEvent, signed: JsonObject): boolean {
  let invites = verified.get(earlier);
  if (invites === undefined) {
    invites = new WeakMap();
    verified.set(earlier, invites);
  }
  let isSigned = invites.get(event);
  if (isSigned === undefined) {
    isSigned = isSignedWithAnyKey(signed, publicKeysOf(earlier.content));
    invites.set(event, isSigned);
  }
  return isSigned;
}

/** 5.4.1.7.1 and 5.4.1.7.2 */
function publicKeysOf(content: JsonObject): string[] {
  const { public_key: single, public_keys: list } = content;
  const keys: string[] = [];
  if (typeof single === 'string') keys.push(single);
  if (!Array.isArray(list)) return keys;
  for (const entry of list) {
    const key = ownProperty(entry, 'public_key');
    if (typeof key === 'string') keys.push(key);
  }
  return keys;
}

import type { RoomEvent } from '../event.ts';
import { isUserId } from '../identifiers/user-ids.ts';
import type { PowerLevels } from '../power-levels/index.ts';

/**
 * Returns the owner of a state key: the key is a user id, or a user id before `_` and a suffix. Returns `undefined` for
 * other state keys. Source: MSC3757, "Restricting who can overwrite a state event".
 */
export function ownerOfStateKey(stateKey: string): string | undefined {
  const colon = stateKey.indexOf(':', 1);
  const suffix = colon === -1 ? -1 : stateKey.indexOf('_', colon + 1);
  const owner = suffix === -1 ? stateKey : stateKey.slice(0, suffix);
  return isUserId(owner) ? owner : undefined;
}

/**
 * Whether the state key allows the sender to set the state event. A state key that begins with `@` must be the id of
 * the sender. In room versions with `ownedState` the id may have a suffix, and users with a higher power level than
 * the user in the state key may set the event too.
 */
export function ownsState({ stateKey, sender, version }: RoomEvent, levels: PowerLevels): boolean {
  if (!stateKey?.startsWith('@') || stateKey === sender) return true;
  if (!version.ownedState) return false;
  const owner = ownerOfStateKey(stateKey);
  return owner !== undefined && (owner === sender || levels.ofUser(sender) > levels.ofUser(owner));
}

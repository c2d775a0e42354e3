import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { checkedAliases } from '../aliases/canonical-alias.ts';
import { badAlias, checkAcl } from '../state-checks.ts';

/** One entry of `initial_state`. */
export interface InitialState {
  readonly type: string;
  readonly state_key?: string;
  readonly content: JsonObject;
}

/**
 * Checks what a new room is to begin with for what would be refused as a later event, and the authorization rules do not
 * look at.
 * @param alias the one that the room will have: no other can lead to it yet
 * @throws MatrixError M_INVALID_ROOM_STATE
 */
export function checkInitialState(
  entries: readonly InitialState[],
  alias: string | undefined,
  serverName: string,
): void {
  for (const { type, state_key: stateKey = '', content } of entries) {
    if (stateKey !== '') continue;
    try {
      if (type === 'm.room.server_acl') checkAcl(content, serverName);
      if (type === 'm.room.canonical_alias') checkAliases(content, alias);
    } catch (error) {
      throw error instanceof MatrixError ? invalidRoomState(error.message) : error;
    }
  }
}

function checkAliases(content: JsonObject, alias: string | undefined): void {
  const stray = checkedAliases(content).find((one) => one !== alias);
  if (stray !== undefined) throw badAlias(stray);
}

export const invalidRoomState = (reason: string) =>
  new MatrixError(400, 'M_INVALID_ROOM_STATE', `The room can not be set up so: ${reason}`);

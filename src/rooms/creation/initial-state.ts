import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { checkedAliases } from '../aliases/canonical-alias.ts';
import { badAlias, checkAcl } from '../state-checks.ts';

/** An entry of `initial_state` in `POST /createRoom`. */
export interface InitialState {
  readonly type: string;
  readonly state_key?: string;
  readonly content: JsonObject;
}

/**
 * Checks the server ACL and the canonical alias in `initial_state`. The authorization rules do not check their content,
 * but the endpoint that sends state events does.
 * @param alias the alias of the new room; no other alias can point to it yet
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
  const invalid = checkedAliases(content).find((listed) => listed !== alias);
  if (invalid !== undefined) throw badAlias(invalid);
}

/** The error of a request whose `initial_state` is invalid, or makes first events that are not allowed. */
export const invalidRoomState = (reason: string) =>
  new MatrixError(400, 'M_INVALID_ROOM_STATE', `Invalid initial room state: ${reason}`);

import { FederationError, type QueriesApi } from '../../federation-client/index.ts';
import { isServerName, type JsonObject, MatrixError } from '../../protocol/index.ts';

/** Milliseconds that one server has: somebody waits, and there are others to ask. */
const patience = 15_000;

/** Asks other servers about spaces and rooms that this one is not in. */
export class RemoteHierarchies {
  readonly #queries: QueriesApi;
  readonly #serverName: string;

  constructor(queries: QueriesApi, serverName: string) {
    this.#queries = queries;
    this.#serverName = serverName;
  }

  /** What the first of the servers says that knows the room; `undefined` when none does. */
  async hierarchy(
    roomId: string,
    via: readonly string[],
    suggestedOnly: boolean,
  ): Promise<JsonObject | undefined> {
    for (const server of new Set(via)) {
      if (server === this.#serverName || !isServerName(server)) continue;
      try {
        return await this.#queries.hierarchy(server, roomId, suggestedOnly, { timeout: patience });
      } catch (error) {
        // With some there is no federation, others are not there, do not know the room or make no sense.
        if (!(error instanceof FederationError || error instanceof MatrixError)) throw error;
      }
    }
    return undefined;
  }
}

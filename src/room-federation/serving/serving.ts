import type { Database } from '../../kernel/database/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { PduStore } from './pdu-store.ts';
import { ServedHistory } from './served-history.ts';
import { ServedState } from './served-state.ts';

/** Answers the requests of remote servers that read rooms. The caller checks access. */
export interface Serving {
  readonly history: ServedHistory;
  readonly state: ServedState;
}

/** Returns the readers of histories and states for remote servers. */
export function openServing(engine: RoomReader, database: Database): Serving {
  const pdus = new PduStore(database);
  return {
    history: new ServedHistory(engine, pdus),
    state: new ServedState(engine, pdus),
  };
}

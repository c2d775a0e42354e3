import type { Database } from '../../kernel/database/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import { PduStore } from './pdu-store.ts';
import { ServedHistory } from './served-history.ts';
import { ServedState } from './served-state.ts';

/** What other servers read of rooms. Whether they may is for the caller to know. */
export interface Serving {
  readonly history: ServedHistory;
  readonly state: ServedState;
}

/** Made after the rooms, whose events it reads. */
export function openServing(engine: RoomReader, database: Database): Serving {
  const pdus = new PduStore(database);
  return {
    history: new ServedHistory(engine, pdus),
    state: new ServedState(engine, pdus),
  };
}

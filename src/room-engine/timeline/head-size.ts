import { MiB } from '../../kernel/caches/index.ts';
import type { InMemoryHead } from './in-memory-head.ts';

/** Maximum estimated size of all cached heads in bytes, before it is multiplied by the cache factor. */
export const maxHeadBytes = 128 * MiB;

/** Estimated size of an entry of the current state, in bytes. */
const stateEntryBytes = 200;
/** Estimated size of a head besides its state and recent events, in bytes. */
const headBytes = 2_000;

/** Estimates the bytes of a head. */
export const sizeOfHead = ({ state, recentBytes }: Pick<InMemoryHead, 'state' | 'recentBytes'>): number =>
  headBytes + stateEntryBytes * state.size + recentBytes;

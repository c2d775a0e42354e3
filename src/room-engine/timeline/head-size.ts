import { MiB } from '../../kernel/caches/index.ts';
import type { InMemoryHead } from './in-memory-head.ts';

/** Maximum estimated bytes of all cached heads at factor 1. */
export const maxHeadBytes = 128 * MiB;

/** Estimated bytes of an entry of the current state, and of a head besides its state and recent events. */
const [stateEntryBytes, headBytes] = [200, 2_000];

export const sizeOfHead = ({ state, recentBytes }: Pick<InMemoryHead, 'state' | 'recentBytes'>): number =>
  headBytes + stateEntryBytes * state.size + recentBytes;

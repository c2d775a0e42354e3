import { LocalStreams, Sequence } from '../../../src/kernel/streams/index.ts';

/**
 * Makes all ids and stream positions that `open` opens raise their bounds on disk by a few numbers at a time, so that
 * few events and keys are enough to pass the bounds.
 */
export async function withSmallSteps<T>(step: number, open: () => Promise<T>): Promise<T> {
  const originals = [Sequence.open, LocalStreams.open] as const;
  const [openSequence, openStreams] = originals;
  Sequence.open = (database, name) => openSequence.call(Sequence, database, name, step);
  LocalStreams.open = (deps) => openStreams.call(LocalStreams, { ...deps, boundStep: step });
  try {
    return await open();
  } finally {
    [Sequence.open, LocalStreams.open] = originals;
  }
}

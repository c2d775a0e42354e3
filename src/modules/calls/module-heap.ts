import { type HeapProfiler, Session } from 'node:inspector';
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger, Metrics } from '../../kernel/observability/index.ts';
import type { ModuleFiles } from './module-files.ts';

/** Milliseconds between two readings. */
const readingInterval = 60_000;

/** In bytes. */
const defaultLimits = {
  /** Allocations between two samples: the usual value for servers, whose cost is small. */
  samplingInterval: 512 * 1024,
  /** Memory of a module from which on the log names it; the log names it again each time its memory has doubled. */
  firstWarning: 64 * 1024 * 1024,
};

export interface ModuleHeapDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
  readonly files: ModuleFiles;
}

type Node = HeapProfiler.SamplingHeapProfileNode;

/**
 * Estimates the heap memory of modules from a sample of the live allocations of the process: an allocation counts for the
 * module whose files have made or caused it. Buffers are not counted. The metric `server_module_heap_bytes` has the estimates,
 * and the log names modules with much memory.
 */
export class ModuleHeap {
  readonly #deps: ModuleHeapDeps;
  readonly #limits: typeof defaultLimits;
  readonly #session = new Session();
  /** Bytes at which the log names a module again. */
  readonly #warnAt = new Map<string, number>();
  readonly #gauge: ((module: string, bytes: number) => void) | undefined;
  #timer: Timer | undefined;

  constructor(deps: ModuleHeapDeps, limits = defaultLimits) {
    this.#deps = deps;
    this.#limits = limits;
    const gauge = deps.metrics?.gauge({
      name: 'server_module_heap_bytes',
      help: 'Estimated memory that a module keeps, without buffers',
      labelNames: ['module'],
    });
    this.#gauge = gauge && ((module, bytes) => gauge.set({ module }, bytes));
  }

  /** Begins to sample, and reads the sample at intervals. */
  start(): void {
    this.#session.connect();
    const { samplingInterval } = this.#limits;
    this.#session.post('HeapProfiler.startSampling', { samplingInterval });
    this.#readLater();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#session.disconnect();
  }

  #readLater(): void {
    this.#timer = this.#deps.clock.setTimer(readingInterval, () => {
      this.#session.post('HeapProfiler.getSamplingProfile', (_error, answer) => {
        if (answer?.profile) this.#report(answer.profile.head);
      });
      this.#readLater();
    });
  }

  #report(head: Node): void {
    for (const [module, bytes] of this.#bytesOf(head)) {
      this.#gauge?.(module, bytes);
      if (bytes < (this.#warnAt.get(module) ?? this.#limits.firstWarning)) continue;
      this.#warnAt.set(module, bytes * 2);
      this.#deps.log.warn({ module, bytes }, 'A module uses much memory');
    }
  }

  /** Returns the bytes that are in use, by module. */
  #bytesOf(head: Node): Map<string, number> {
    const bytes = new Map<string, number>();
    const pending: { readonly node: Node; readonly caller: string | undefined }[] = [
      { node: head, caller: undefined },
    ];
    for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
      const { node } = entry;
      const owner = this.#deps.files.ownerOf(node.callFrame.url) ?? entry.caller;
      if (owner !== undefined) bytes.set(owner, (bytes.get(owner) ?? 0) + node.selfSize);
      for (const child of node.children) pending.push({ node: child, caller: owner });
    }
    return bytes;
  }
}

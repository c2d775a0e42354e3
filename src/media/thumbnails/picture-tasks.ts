import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { TaskFailure, TaskProcesses } from '../../kernel/task-processes/index.ts';
import { asPicture, type Picture } from './picture.ts';
import type { PictureResult, PictureTask } from './picture-task.ts';

/** The library rejects a file, or crashes on it. */
export class NoThumbnail extends Error {
  override readonly name = 'NoThumbnail';
}

export type Urgency = 'urgent' | 'background';

const second = 1_000;

const limits = {
  processes: 2,
  waiting: { urgent: 200, background: 1_000 },
  taskTimeout: 20 * second,
  idleTimeout: 15 * second,
  growAfter: 500,
};

/**
 * Disables temporary files, which a killed process would leave behind (the limit of pixels bounds the memory), and
 * limits the memory pools of the C library.
 */
const environment = { VIPS_DISC_THRESHOLD: '8g', MALLOC_ARENA_MAX: '2' };

/** Reads pictures and makes thumbnails in processes that may crash: see decision 0118. */
export class PictureTasks {
  readonly #processes: TaskProcesses<PictureTask, PictureResult>;
  readonly #log: Logger;
  #hasComplained = false;

  /** @param program of the processes, without its extension */
  constructor({ clock, log }: { clock: Clock; log: Logger }, program = './picture-process') {
    this.#log = log;
    const importedFrom = import.meta.url;
    this.#processes = new TaskProcesses({ program, importedFrom, environment, limits, clock });
  }

  /** @throws NoThumbnail; TaskFailure when the picture is not the cause */
  async examine(source: string, urgency: Urgency): Promise<Picture> {
    const result = await this.#run({ kind: 'examine', source }, urgency);
    const picture = result.kind === 'picture' ? asPicture(result.picture) : undefined;
    if (picture === undefined) throw new NoThumbnail('It has not been examined');
    return picture;
  }

  /** @throws as `examine` does */
  async make(task: Omit<Extract<PictureTask, { kind: 'make' }>, 'kind'>, urgency: Urgency): Promise<void> {
    await this.#run({ kind: 'make', ...task }, urgency);
  }

  stop(): void {
    this.#processes.stop();
  }

  async #run(task: PictureTask, urgency: Urgency): Promise<PictureResult> {
    // A process that a picture has compromised may answer anything.
    let result: PictureResult | null;
    try {
      result = await this.#processes.run(task, urgency);
    } catch (error) {
      if (!(error instanceof TaskFailure)) throw error;
      if (error.reason === 'unavailable') this.#logOnce(error);
      const isItsFault = error.reason === 'crashed' || error.reason === 'too-slow';
      throw isItsFault ? new NoThumbnail(error.message) : error;
    }
    if (result?.kind === 'refused') throw new NoThumbnail(String(result.why));
    if (result?.kind !== 'picture' && result?.kind !== 'made') throw new NoThumbnail('It makes no sense');
    return result;
  }

  /** Logs the error once, since it is the same for each picture. */
  #logOnce(err: TaskFailure): void {
    this.#log[this.#hasComplained ? 'debug' : 'error']({ err }, 'No thumbnails can be made here');
    this.#hasComplained = true;
  }
}

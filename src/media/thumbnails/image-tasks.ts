import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { TaskFailure, TaskProcesses } from '../../kernel/task-processes/index.ts';
import { asImage, type Image } from './image.ts';
import type { ImageResult, ImageTask } from './image-task.ts';

/**
 * No thumbnail can be made of a file: it is not an image, or the image library rejects it, crashes, or takes too long.
 */
export class NoThumbnail extends Error {
  override readonly name = 'NoThumbnail';
}

export type TaskUrgency = 'urgent' | 'background';

const second = 1_000;

const limits = {
  processes: 2,
  waiting: { urgent: 200, background: 1_000 },
  taskTimeout: 20 * second,
  idleTimeout: 15 * second,
  // Under load, tasks usually wait one second. A further process takes 45 MB, so it starts only when tasks wait longer
  // because an image takes very long.
  growAfter: 2 * second,
};

/**
 * Environment variables of the processes. The first disables temporary files, which a killed process would leave
 * behind; the limit of pixels bounds the memory instead. The second limits the memory pools of the C library.
 */
const environment = { VIPS_DISC_THRESHOLD: '8g', MALLOC_ARENA_MAX: '2' };

/** Reads images and makes thumbnails in separate processes, which may crash (decision 0118). */
export class ImageTasks {
  readonly #processes: TaskProcesses<ImageTask, ImageResult>;
  readonly #log: Logger;
  #hasLogged = false;

  /**
   * @param program path of the program of the processes, without its extension
   * @param waiting how many tasks may wait
   */
  constructor(
    { clock, log }: { clock: Clock; log: Logger },
    program = './image-process',
    waiting = limits.waiting,
  ) {
    this.#log = log;
    const importedFrom = import.meta.url;
    this.#processes = new TaskProcesses({
      program,
      importedFrom,
      environment,
      limits: { ...limits, waiting },
      clock,
    });
  }

  /** Returns the properties of an image. @throws NoThumbnail; TaskFailure when the image is not the cause */
  async examine(source: string, urgency: TaskUrgency): Promise<Image> {
    const result = await this.#run({ kind: 'examine', source }, urgency);
    const image = result.kind === 'image' ? asImage(result.image) : undefined;
    if (image === undefined) throw new NoThumbnail('The process returned invalid properties');
    return image;
  }

  /** Makes a thumbnail. @throws the errors of `examine` */
  async make(task: Omit<Extract<ImageTask, { kind: 'make' }>, 'kind'>, urgency: TaskUrgency): Promise<void> {
    await this.#run({ kind: 'make', ...task }, urgency);
  }

  stop(): void {
    this.#processes.stop();
  }

  async #run(task: ImageTask, urgency: TaskUrgency): Promise<ImageResult> {
    // A process that an image has compromised may return anything.
    let result: ImageResult | null;
    try {
      result = await this.#processes.run(task, urgency);
    } catch (error) {
      if (!(error instanceof TaskFailure)) throw error;
      if (error.reason === 'unavailable') this.#logOnce(error);
      const isFaultOfImage = error.reason === 'crashed' || error.reason === 'too-slow';
      throw isFaultOfImage ? new NoThumbnail(error.message) : error;
    }
    if (result?.kind === 'refused') throw new NoThumbnail(String(result.why));
    if (result?.kind !== 'image' && result?.kind !== 'made')
      throw new NoThumbnail('The process returned an invalid result');
    return result;
  }

  /** Logs the error as an error only once, since it is the same for each image. */
  #logOnce(err: TaskFailure): void {
    this.#log[this.#hasLogged ? 'debug' : 'error'](
      { err },
      'No thumbnails can be made: the process for images does not start',
    );
    this.#hasLogged = true;
  }
}

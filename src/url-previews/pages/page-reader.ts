import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { TaskFailure, TaskProcesses } from '../../kernel/task-processes/index.ts';
import { limitExceeded } from '../../protocol/index.ts';
import type { PageResult, PageTask } from './page-task.ts';
import { webUrl } from './web-url.ts';

const second = 1_000;

/** Limits of the process that reads pages; times are milliseconds. */
const limits = {
  processes: 1,
  waiting: { urgent: 50, background: 0 },
  taskTimeout: 5 * second,
  idleTimeout: 15 * second,
  growAfter: 500,
};

/**
 * Default of the maximum bytes of all pages that wait for the process or that it is reading. A single page may be
 * larger.
 */
const defaultMaxWaitingBytes = 16 * 1024 * 1024;

const emptyResult: PageResult = { properties: {}, images: [] };

/** Maximum number of properties of a preview. */
const maxProperties = 50;

/**
 * Maximum number of characters of the name of a property; the reference server leaves out properties with longer names.
 */
const maxName = 50;

/**
 * Maximum number of characters of the value of a property; the reference server leaves out properties with longer
 * values.
 */
const maxValue = 1_000;

/** Maximum number of images that are taken from a result of the process. An intact process returns fewer. */
const maxImages = 5;

interface PageReaderDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxWaitingBytes?: number;
}

/** Reads pages in a separate process, because a hostile page may crash or occupy it (decision 0170). */
export class PageReader {
  readonly #processes: TaskProcesses<PageTask, PageResult>;
  readonly #log: Logger;
  readonly #maxWaitingBytes: number;
  #waitingBytes = 0;

  constructor({ clock, log, maxWaitingBytes = defaultMaxWaitingBytes }: PageReaderDeps) {
    this.#log = log;
    this.#maxWaitingBytes = maxWaitingBytes;
    const importedFrom = import.meta.url;
    const environment = { MALLOC_ARENA_MAX: '2' };
    this.#processes = new TaskProcesses({
      program: './page-process',
      importedFrom,
      environment,
      limits,
      clock,
    });
  }

  /**
   * Reads a page or an oEmbed response. A page that takes too long or crashes the process has an empty result.
   * @throws MatrixError M_LIMIT_EXCEEDED when too many pages or bytes wait; TaskFailure when no process can start
   */
  async read(
    kind: PageTask['kind'],
    page: { body: Buffer; contentType: string; url: URL },
  ): Promise<PageResult> {
    const { length } = page.body;
    if (this.#waitingBytes > 0 && this.#waitingBytes + length > this.#maxWaitingBytes)
      throw limitExceeded(second);
    const task = {
      kind,
      body: page.body.toString('base64'),
      contentType: page.contentType,
      url: page.url.href,
    };
    this.#waitingBytes += length;
    try {
      return validParts(await this.#processes.run(task, 'urgent'));
    } catch (error) {
      if (!(error instanceof TaskFailure)) throw error;
      if (error.reason === 'busy') throw limitExceeded(second);
      if (error.reason === 'unavailable' || error.reason === 'stopped') throw error;
      this.#log.info({ host: page.url.host, why: error.reason }, 'A page could not be read for a preview');
      return emptyResult;
    } finally {
      this.#waitingBytes -= length;
    }
  }

  stop(): void {
    this.#processes.stop();
  }
}

/** Returns the valid parts of a result: a process that a page has compromised may return anything. */
function validParts(result: PageResult | null): PageResult {
  if (typeof result !== 'object' || result === null) return emptyResult;
  const { properties, images, oEmbedUrl, author } = result;
  const entries = Object.entries(properties ?? {}).filter(
    ([name, value]) => name.length <= maxName && isText(value) && value.length <= maxValue,
  );
  return {
    properties: Object.fromEntries(entries.slice(0, maxProperties)),
    images: (Array.isArray(images) ? images : [])
      .filter((url) => isText(url) && webUrl(url) !== undefined)
      .slice(0, maxImages),
    oEmbedUrl: isText(oEmbedUrl) ? webUrl(oEmbedUrl) : undefined,
    author: isText(author) && author.length <= maxValue ? author : undefined,
  };
}

/** Reports whether a value is a string that databases can store. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0');

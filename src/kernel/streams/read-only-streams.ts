import type { RemoteStreams } from './remote-streams.ts';
import type { StreamWriter } from './stream-writer.ts';

const refused = () => new Error('This process follows the streams of another one and does not write');

/** The streams of a reader process: they follow the streams of the main process, and methods that write fail. */
export class ReadOnlyStreams implements StreamWriter {
  readonly #remote: RemoteStreams;

  constructor(remote: RemoteStreams) {
    this.#remote = remote;
  }

  get current(): number {
    return this.#remote.current;
  }

  onAdvance(listener: (current: number) => void): void {
    this.#remote.onAdvance(listener);
  }

  write(): Promise<never> {
    return Promise.reject(refused());
  }

  announce(): never {
    throw refused();
  }

  reserving(): never {
    throw refused();
  }
}

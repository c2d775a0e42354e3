import type { FactCodec } from './fact-codec.ts';

type Listener<F> = (fact: F, position: number) => void;

/** Reads the private listeners of a stream. Set in the class, so that `deliver` can read them and users of a stream cannot. */
let listenersOf: <F>(stream: Stream<F>) => readonly Listener<F>[];

/** A named kind of fact. Its facts are delivered to listeners in the order of their positions, after commit. */
export class Stream<F> {
  readonly name: string;
  readonly codec: FactCodec<F>;
  readonly #listeners: Listener<F>[] = [];

  /**
   * @param name the same in all processes of a server, and in all its versions
   * @param codec for processes that follow the stream without writing it
   */
  constructor(name: string, codec: FactCodec<F>) {
    this.name = name;
    this.codec = codec;
  }

  /** Listeners must be quick and must not throw; slow work belongs in a `Follower`. */
  subscribe(listener: Listener<F>): void {
    this.#listeners.push(listener);
  }

  static {
    listenersOf = (stream) => stream.#listeners;
  }
}

/** Receives the error that a listener has thrown. The error affects neither other listeners nor later facts. */
export type ListenerFailed = (error: unknown, stream: string, position: number) => void;

/** Delivers a fact to the listeners of its stream. For `LocalStreams` and `RemoteStreams` only. */
export function deliver<F>(stream: Stream<F>, fact: F, position: number, failed: ListenerFailed): void {
  for (const listener of listenersOf(stream)) {
    try {
      listener(fact, position);
    } catch (error) {
      failed(error, stream.name, position);
    }
  }
}

import type { Clock } from '../../kernel/clock.ts';
import { SpareThreads } from '../../kernel/threads/index.ts';
import { readMetadata, type SamlIdentityProvider } from './saml-metadata.ts';

/**
 * Maximum characters of a document that is parsed on the calling thread. Parsing a document of this length takes some
 * milliseconds.
 */
const maxOnCallingThread = 64 * 1024;

/** Milliseconds until a document on another thread counts as unreadable, so that later reads can begin. */
const timeout = 60_000;

type FromThread = { readonly providers: SamlIdentityProvider[] } | { readonly failed: string };

const threads = new SpareThreads('./metadata-thread', import.meta.url);

/**
 * Returns the identity providers of a metadata document, as `readMetadata`. Long documents, which federations of many
 * organizations publish, are parsed on another thread, so that they do not block the event loop.
 * @throws Error when the document is not valid, or is not read in time
 */
export async function readMetadataOffThread(text: string, clock: Clock): Promise<SamlIdentityProvider[]> {
  if (text.length <= maxOnCallingThread) return readMetadata(text);
  const thread = threads.take();
  thread.ref();
  const { promise, resolve, reject } = Promise.withResolvers<FromThread>();
  thread.once('message', resolve);
  thread.once('error', reject);
  thread.once('exit', () => reject(new Error('the thread that reads the metadata has ended')));
  const timer = clock.setTimer(timeout, () => {
    reject(new Error(`the metadata was not read in ${timeout / 1000} s`));
    void thread.terminate();
  });
  thread.postMessage(text);
  const answer = await promise.finally(() => timer.cancel());
  threads.release(thread);
  if ('failed' in answer) throw new Error(answer.failed);
  return answer.providers;
}

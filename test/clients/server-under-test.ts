import { HearthProcess } from './hearth-process.ts';

export interface ServerUnderTest {
  /** Where clients connect to, without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * The server that the clients talk to: a Hearth of its own for each caller or, to prove the tests themselves, the
 * homeserver with open registration that the environment variable `HEARTH_TEST_URL` names.
 */
export async function serverUnderTest(): Promise<ServerUnderTest> {
  const url = process.env['HEARTH_TEST_URL'];
  if (url) return { url: url.replace(/\/$/, ''), async stop() {} };
  const hearth = await HearthProcess.create();
  await hearth.start();
  return { url: hearth.url, stop: () => hearth.remove() };
}

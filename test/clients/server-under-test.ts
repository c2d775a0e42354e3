import { HearthProcess } from './hearth-process.ts';

export interface ServerUnderTest {
  /** Base URL for clients, without a trailing slash. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts the server that the clients talk to: a new Hearth for each caller. If the environment variable
 * `HEARTH_TEST_URL` names a homeserver with open registration, that one is used, to verify the tests
 * themselves.
 * @param settings further options of the configuration file
 */
export async function serverUnderTest(
  settings: Readonly<Record<string, unknown>> = {},
): Promise<ServerUnderTest> {
  const url = process.env['HEARTH_TEST_URL'];
  if (url) return { url: url.replace(/\/$/, ''), async stop() {} };
  const hearth = await HearthProcess.create(settings);
  await hearth.start();
  return { url: hearth.url, stop: () => hearth.remove() };
}

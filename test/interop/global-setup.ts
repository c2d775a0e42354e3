import { InteropNetwork } from './interop-network.ts';
import { shareServers } from './shared-network.ts';

let network: InteropNetwork | undefined;

/** Runs once before all test files (`node --test --test-global-setup`). */
export async function globalSetup(): Promise<void> {
  network = await InteropNetwork.start();
  shareServers(network);
}

/**
 * Runs once after all test files. Writes errors to the standard error, because the test runner does not
 * report them.
 */
export async function globalTeardown(): Promise<void> {
  await network?.stop().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    throw error;
  });
}

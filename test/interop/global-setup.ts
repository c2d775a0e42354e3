import { Network } from './network.ts';
import { share } from './shared-network.ts';

let network: Network | undefined;

/** Runs once before all test files (`node --test --test-global-setup`). */
export async function globalSetup(): Promise<void> {
  network = await Network.start();
  share(network);
}

/** Runs once after all test files. What goes wrong here fails the run, which says nothing of it by itself. */
export async function globalTeardown(): Promise<void> {
  await network?.stop().catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    throw error;
  });
}

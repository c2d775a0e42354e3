/** Commands that a program on the same machine sends to the running server. */
export { NoServer, sendCommand } from './control-client.ts';
export {
  type ControlCommand,
  type ControlSocket,
  controlPathOf,
  openControlSocket,
} from './control-socket.ts';

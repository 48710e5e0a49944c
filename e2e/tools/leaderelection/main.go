// leaderelection is a replica that does nothing but elect a leader with client-go, as the peer of the operator in `cargo e2e bench leadership`.
//
// It is started like the operator: KUBECONFIG, HOSTNAME as its identity, flags that it ignores, SIGTERM.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		log.Fatal(err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		log.Fatal(err)
	}
	identity := os.Getenv("HOSTNAME")
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "orchestratord", Namespace: namespace},
			Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { log.Printf("%s leads", identity) },
			OnStoppedLeading: func() { log.Printf("%s does not lead", identity) },
		},
	})
}

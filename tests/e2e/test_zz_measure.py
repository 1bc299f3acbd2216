import json, os, time
from pathlib import Path
import pytest
from tests.builders import job, task
from tests.support.installation import installed
from tests.support.controlplane.processes import wait_until
TICK=os.sysconf("SC_CLK_TCK")
def look(inst):
    out={}
    for n,p in inst.processes.items():
        st=Path(f"/proc/{p.pid}/status").read_text()
        hwm=int(st.split("VmHWM:")[1].split()[0])/1024; rss=int(st.split("VmRSS:")[1].split()[0])/1024
        f=Path(f"/proc/{p.pid}/stat").read_text().rsplit(")",1)[1].split()
        out[n]=(round(rss),round(hwm),(int(f[11])+int(f[12]))/TICK)
    return out
def test_m(controlplane, tmp_path, add_node, namespace):
    with installed(controlplane,tmp_path) as inst:
        for i in range(20): add_node(f"m-{i}","64")
        time.sleep(3); a=look(inst); print("start",a)
        time.sleep(10); b=look(inst); print("idle10s",b)
        wait_until(lambda: controlplane.request("POST",f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs?dryRun=All",job("x",[task("w",5,cpu="1")],namespace=namespace))[0]==201,"adm",20)
        b=look(inst)
        N=200
        for i in range(N):
            m=job(f"j-{i}",[task("w",5,cpu="1")],plugins={"svc":[],"env":[]}); del m["metadata"]["namespace"]
            s,ans=controlplane.request("POST",f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs",m)
            assert s==201,ans
        def done():
            items=controlplane.request("GET",f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs")[1]["items"]
            return all(x.get("status",{}).get("state",{}).get("phase")=="Running" for x in items)
        t=time.time()
        wait_until(done,"running",200); print("running after",time.time()-t)
        time.sleep(2); c=look(inst); print("after",N,c, {k:round((c[k][2]-b[k][2])/N*1000,2) for k in c},"ms cpu/job")
        time.sleep(10); d=look(inst); print("idle10s loaded",d, {k:round((d[k][2]-c[k][2])/10*1000,1) for k in d},"m cpu")
